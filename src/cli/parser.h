// The command line: commands and their flags. CLI11 is behind it, in one file: each file that includes CLI11 takes the
// compiler 8 s longer.
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

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace quern::cli {

// What a whole number may be.
struct Range {
  uint64_t min = 0;
  uint64_t max = std::numeric_limits<uint64_t>::max();
};

// Empty when `text` is decimal digits within the range, from which zeros in front are then removed; else what is wrong.
std::string check_whole_number(std::string& text, Range range);

// One command and its flags. A handle: copies are the same command. The variables that values go to must live until the
// line has been parsed. `type` is the word for the value in the help: "DIR". Defaults that are not empty are shown.
class Parser {
 public:
  // A command below this one.
  Parser add_command(const char* name, const char* help);
  // The end of the help.
  void set_footer(const char* text);

  void add_flag(const char* name, bool& value, const char* help);
  void add_text(const char* name, std::string& value, const char* type, const std::string& help);
  void add_text(const char* name, std::optional<std::string>& value, const char* type, const std::string& help);
  // Calls back with the value of the last time that the flag was given.
  void add_text(const char* name, std::function<void(const std::string&)> use, const char* type,
                const std::string& help);
  // Decimal digits within the range, or an error that says so.
  void add_number(const char* name, uint64_t& value, const char* type, const std::string& help, Range range = {});
  void add_number(const char* name, int64_t& value, const char* type, const std::string& help);  // 0 or more
  void add_number(const char* name, float& value, const char* type, const std::string& help);
  // One of these words.
  void add_choice(const char* name, std::string& value, const std::vector<std::string_view>& choices, const char* type,
                  const std::string& help);
  // May be repeated; one value after each.
  void add_list(const char* name, std::vector<std::string>& values, const char* type, const std::string& help);
  // The words that belong to no flag: DATA.
  void add_words(const char* name, std::vector<std::string>& values, const std::string& help);
  void add_word(const char* name, std::string& value, const std::string& help);
  // --threads N, 1 to kMaxThreads; `threads` starts as the cores that can be used.
  void add_threads(size_t& threads);

  // Whether the line named this command.
  bool parsed() const;

 private:
  friend class CommandLine;
  explicit Parser(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

// What a command does once its line is parsed; returns the exit code: 0 fine, 1 ran and found a failure. Bad input
// throws.
using Run = std::function<int()>;

struct Command {
  Parser parser;
  Run run;
};

// A program of commands.
class CommandLine {
 public:
  // `name` is how it is called: "quern".
  CommandLine(const char* name, const char* description);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  Parser root();

  // Parses, and calls `run`; prints and returns 0 for --help and --version. Error for a line that is not understood.
  int run(int argc, char** argv, const Run& run);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace quern::cli
