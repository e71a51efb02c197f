#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>

#include "cli/aliases.h"
#include "cli/suggest.h"
#include "cli/version.h"
#include "config/synonyms.h"
#include "core/cpu_info.h"
#include "core/error.h"
#include "core/team.h"
#include "core/text.h"
#include "core/whole_number.h"

namespace quern::cli {
namespace {

// CLI11 parses integers with strtoull(), which reads -1 as 2^64 - 1, saturates beyond 64 bits, and reads 010 as 8.
CLI::Validator whole_number(Range range) {
  return {[range](std::string& text) { return check_whole_number(text, range); }, ""};
}

// The flag with its aliases, as CLI11 expects them.
std::string all_names(const char* flag) { return fmt::format("{}", fmt::join(names_of(flag), ",")); }

// Prints a flag by its own name, and the aliases after the description.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional || option->get_lnames().empty()) return Formatter::make_option_name(option, is_positional);
    const std::string name = "--" + option->get_lnames().front();
    return option->get_snames().empty() ? name : fmt::format("-{},{}", option->get_snames().front(), name);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    if (option->get_lnames().empty()) return option->get_description();
    const std::vector<std::string> others = aliases_of("--" + option->get_lnames().front());
    if (others.empty()) return option->get_description();
    return fmt::format("{} (or {})", option->get_description(), fmt::join(others, ", "));
  }
};

// The flag of this kind that there is.
constexpr std::string_view kFlagWithNumber = "--dashboard";

// The recognised commands from the program to the deepest one.
std::vector<CLI::App*> command_path(CLI::App& app) {
  std::vector<CLI::App*> path = {&app};
  while (!path.back()->get_subcommands().empty()) path.push_back(path.back()->get_subcommands().back());
  return path;
}

// As the user would type it: "quern bench kernels".
std::string command_line_of(const std::vector<CLI::App*>& path) {
  std::string line;
  for (const CLI::App* app : path) line += (line.empty() ? "" : " ") + app->get_name();
  return line;
}

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

CommandFlags flags_of(const CLI::App& app, const std::string& command) {
  CommandFlags all{command, {}};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name.find('_') == std::string::npos) all.flags.push_back("--" + name);
    }
  }
  return all;
}

std::string help_for(const std::string& line) { return fmt::format("; run `{} --help`", line); }

[[noreturn]] void throw_unknown_flag(const std::string& found, const std::vector<CLI::App*>& path) {
  const std::string line = command_line_of(path);
  std::vector<CommandFlags> others;
  for (const CLI::App* app : commands_of(*path.front())) {
    if (app != path.back()) others.push_back(flags_of(*app, path.front()->get_name() + " " + app->get_name()));
  }
  const std::string advice = suggest_flag(found, flags_of(*path.back(), line), others);
  throw Error("unknown flag '{}'{}", found, advice.empty() ? help_for(line) : advice);
}

[[noreturn]] void throw_unknown_word(const std::string& found, const std::vector<CLI::App*>& path) {
  const std::string line = command_line_of(path);
  std::vector<std::string> names;
  for (const CLI::App* app : commands_of(*path.back())) names.push_back(app->get_name());
  if (names.empty()) throw Error("unexpected argument '{}'{}", found, help_for(line));
  const std::string advice = suggest_command(found, names);
  throw Error("unknown command '{}'{}", found, advice.empty() ? help_for(line) : advice);
}

// "byte, char or bpe".
std::string listed(const std::vector<std::string_view>& words) {
  const std::vector<std::string_view> first(words.begin(), words.end() - 1);
  return words.size() == 1 ? std::string(words[0]) : fmt::format("{} or {}", fmt::join(first, ", "), words.back());
}

// The arguments, last first as CLI11 takes them, with --dashboard 9000 as --dashboard=9000. The word after such a flag
// may be DATA as well: CLI11 would either take it for the value, whatever it is, or never.
std::vector<std::string> joined_flags(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool joins = i > 1 && argv[i - 1] == kFlagWithNumber && parse_whole_number(word);
    if (joins) {
      words.back() += fmt::format("={}", word);
    } else {
      words.emplace_back(word);
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

std::string check_whole_number(std::string& text, Range range) {
  const std::optional<uint64_t> value = parse_whole_number(text);
  if (!value || *value < range.min || *value > range.max) {
    return fmt::format("expected a whole number from {} to {}, found {}{}", range.min, range.max, in_quotes(text, 40),
                       whole_number_hint(text));
  }
  text = std::to_string(*value);
  return {};
}

Parser Parser::add_command(const char* name, const char* help) { return Parser(app_->add_subcommand(name, help)); }

void Parser::set_footer(const char* text) { app_->footer(text); }

void Parser::add_flag(const char* name, bool& value, const char* help) { app_->add_flag(all_names(name), value, help); }

void Parser::add_flag(const char* name, std::optional<uint64_t>& value, uint64_t implied, const char* help,
                      Range range) {
  // Given a reference, CLI11 would set it to 0 here, as if the flag had been used. It reads "0" as false, which is -1.
  const std::function<void(int64_t)> set = [&value](int64_t found) { value = std::max<int64_t>(found, 0); };
  app_->add_flag_function(fmt::format("{}{{{}}}", name, implied), set, help)
      ->transform(whole_number(range))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::add_text(const char* name, std::string& value, const char* type, const std::string& help) {
  CLI::Option* option = app_->add_option(all_names(name), value, help)->type_name(type);
  if (!value.empty()) option->capture_default_str();
}

void Parser::add_text(const char* name, std::optional<std::string>& value, const char* type, const std::string& help) {
  app_->add_option(all_names(name), value, help)->type_name(type);
}

void Parser::add_text(const char* name, const std::function<void(const std::string&)>& use, const char* type,
                      const std::string& help) {
  app_->add_option_function<std::string>(all_names(name), use, help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::add_number(const char* name, uint64_t& value, const char* type, const std::string& help, Range range) {
  app_->add_option(all_names(name), value, help)
      ->transform(whole_number(range))
      ->type_name(type)
      ->capture_default_str();
}

void Parser::add_number(const char* name, std::optional<uint64_t>& value, const char* type, const std::string& help,
                        Range range) {
  app_->add_option(all_names(name), value, help)->transform(whole_number(range))->type_name(type);
}

void Parser::add_number(const char* name, int64_t& value, const char* type, const std::string& help) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  app_->add_option(all_names(name), value, help)
      ->transform(whole_number({0, kMax}))
      ->type_name(type)
      ->capture_default_str();
}

void Parser::add_number(const char* name, float& value, const char* type, const std::string& help) {
  app_->add_option(all_names(name), value, help)->type_name(type)->capture_default_str();
}

void Parser::add_choice(const char* name, std::string& value, const std::vector<std::string_view>& choices,
                        const char* type, const std::string& help) {
  const auto check = [choices](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
    return fmt::format("expected {}, found {}{}", listed(choices), in_quotes(text, 40),
                       train::did_you_mean(text, choices));
  };
  app_->add_option(all_names(name), value, help)
      ->check(CLI::Validator(check, ""))
      ->type_name(type)
      ->capture_default_str();
}

void Parser::add_list(const char* name, std::vector<std::string>& values, const char* type, const std::string& help) {
  app_->add_option(all_names(name), values, help)
      ->type_name(type)
      ->allow_extra_args(false);  // the next word may be DATA
}

void Parser::add_words(const char* name, std::vector<std::string>& values, const std::string& help) {
  app_->add_option(name, values, help);
}

void Parser::add_word(const char* name, std::string& value, const std::string& help) {
  app_->add_option(name, value, help);
}

void Parser::add_threads(size_t& threads) {
  threads = std::min(cpu_info().usable_cores, kMaxThreads);
  add_number("--threads", threads, "N", fmt::format("Worker threads, 1 to {}", kMaxThreads), {1, kMaxThreads});
}

bool Parser::parsed() const { return app_->parsed(); }

CommandLine::CommandLine(const char* name, const char* description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<HelpFormat>());
  app_->set_version_flag("--version", version_line());
  app_->require_subcommand(0, 1);  // without a command, `run` lists the commands
}

CommandLine::~CommandLine() = default;

Parser CommandLine::root() { return Parser(app_.get()); }

int CommandLine::run(int argc, char** argv, const Run& run) {
  try {
    app_->parse(joined_flags(argc, argv));
    return run();
  } catch (const CLI::Success& asked) {  // --help, --version
    const int code = app_->exit(asked);
    std::cout.flush();
    return code;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app_->remaining(true);
    const std::string found = extras.empty() ? std::string() : extras.front();
    if (found.starts_with('-')) throw_unknown_flag(found, command_path(*app_));
    throw_unknown_word(found, command_path(*app_));
  } catch (const CLI::ParseError& error) {
    const std::string what = error.what();
    throw Error("{}{}", what, what.ends_with('?') ? "" : help_for(command_line_of(command_path(*app_))));
  }
}

}  // namespace quern::cli
