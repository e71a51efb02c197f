// The command line: commands and their flags. Hides CLI11 in one source file, because including it adds 8 s to the
// compilation of each file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): of CLI11
class App;
class Option;
}  // namespace CLI

namespace quern::cli {

// The range of an integer, limits included.
struct Range {
  uint64_t min = 0;
  uint64_t max = std::numeric_limits<uint64_t>::max();
};

// Checks that `text` is a whole number (core/whole_number.h) within the range, and replaces it by its decimal digits.
// Returns an empty string, or a description of what is wrong.
std::string check_whole_number(std::string& text, Range range);

// One command and its flags. This is a handle: copies refer to the same command. The variables that receive values must
// outlive parsing. `type` is the placeholder for the value in the help, such as "DIR". The help shows defaults that are
// not empty.
class Parser {
 public:
  // Adds a subcommand.
  Parser add_command(const char* name, const char* help);
  // Sets the text at the end of the help.
  void set_footer(const char* text);

  void add_flag(const char* name, bool& value, const char* help);
  // A flag that may have a number: --name stands for `implied`; --name=N and, as far as it is one, --name N for N.
  void add_flag(const char* name, std::optional<uint64_t>& value, uint64_t implied, const char* help, Range range = {});
  void add_text(const char* name, std::string& value, const char* type, const std::string& help);
  void add_text(const char* name, std::optional<std::string>& value, const char* type, const std::string& help);
  // Calls `use` with the value of the last occurrence of the flag.
  void add_text(const char* name, const std::function<void(const std::string&)>& use, const char* type,
                const std::string& help);
  // Accepts a whole number within the range.
  void add_number(const char* name, uint64_t& value, const char* type, const std::string& help, Range range = {});
  // The same without a default.
  void add_number(const char* name, std::optional<uint64_t>& value, const char* type, const std::string& help,
                  Range range = {});
  void add_number(const char* name, int64_t& value, const char* type, const std::string& help);  // 0 or more
  void add_number(const char* name, float& value, const char* type, const std::string& help);
  // Accepts one of `choices`.
  void add_choice(const char* name, std::string& value, const std::vector<std::string_view>& choices, const char* type,
                  const std::string& help);
  // A repeatable flag that takes one value each time.
  void add_list(const char* name, std::vector<std::string>& values, const char* type, const std::string& help);
  // Positional arguments, such as DATA.
  void add_words(const char* name, std::vector<std::string>& values, const std::string& help);
  void add_word(const char* name, std::string& value, const std::string& help);
  // Adds --threads N, 1 to kMaxThreads; the default is the number of usable cores.
  void add_threads(size_t& threads);

  // Whether the command line contained this command.
  bool parsed() const;

 private:
  friend class CommandLine;
  explicit Parser(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

// The action of a command, called after parsing. Returns the exit code: 0 for success, 1 if it ran and found a failure.
// Throws on bad input.
using Run = std::function<int()>;

struct Command {
  Parser parser;
  Run run;
};

// A program with commands.
class CommandLine {
 public:
  // `name` is the name of the program: "quern".
  CommandLine(const char* name, const char* description);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  Parser root();

  // Parses the arguments and calls `run`; for --help and --version, prints and returns 0. Error if parsing fails.
  int run(int argc, char** argv, const Run& run);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace quern::cli
