// The prompt of `quern generate` and `quern chat`: given on the command line, in a file or on standard input.
#pragma once

#include <optional>
#include <string>

namespace quern::cli {

struct PromptInput {
  std::optional<std::string> text;  // --prompt; "-" is standard input
  std::optional<std::string> file;  // --prompt-file; "-" is standard input
};

// The prompt; nullopt if none was given. Of a file and of standard input, a byte order mark at the beginning and one
// line break at the end are not part of it: editors and `echo` add them. Standard input is read only on request, since
// a command in a loop such as `while read run; do quern generate $run; done < list` would consume the list. Error if
// both are given, or if the file is missing or larger than 16 MB.
std::optional<std::string> read_prompt(const PromptInput& input);

}  // namespace quern::cli
