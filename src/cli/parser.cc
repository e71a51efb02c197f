#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <system_error>
#include <utility>

#include "cli/version.h"
#include "core/cpu_info.h"
#include "core/error.h"
#include "core/team.h"
#include "core/text.h"

namespace quern::cli {
namespace {

// CLI11 parses integers with strtoull(), which reads -1 as 2^64 - 1, saturates beyond 64 bits, and reads 010 as 8.
CLI::Validator whole_number(Range range) {
  return {[range](std::string& text) { return check_whole_number(text, range); }, ""};
}

// The deepest recognised command, as the user would type it: "quern bench kernels".
std::string command_line_of(const CLI::App& app) {
  std::string line = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    line += " " + at->get_name();
  }
  return line;
}

}  // namespace

std::string check_whole_number(std::string& text, Range range) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = code == std::errc() && end == text.data() + text.size() && value >= range.min && value <= range.max;
  if (!good) {
    return fmt::format("expected a whole number from {} to {}, found {}", range.min, range.max, in_quotes(text, 40));
  }
  text = std::to_string(value);
  return {};
}

Parser Parser::add_command(const char* name, const char* help) { return Parser(app_->add_subcommand(name, help)); }

void Parser::set_footer(const char* text) { app_->footer(text); }

void Parser::add_flag(const char* name, bool& value, const char* help) { app_->add_flag(name, value, help); }

void Parser::add_text(const char* name, std::string& value, const char* type, const std::string& help) {
  CLI::Option* option = app_->add_option(name, value, help)->type_name(type);
  if (!value.empty()) option->capture_default_str();
}

void Parser::add_text(const char* name, std::optional<std::string>& value, const char* type, const std::string& help) {
  app_->add_option(name, value, help)->type_name(type);
}

void Parser::add_text(const char* name, const std::function<void(const std::string&)>& use, const char* type,
                      const std::string& help) {
  app_->add_option_function<std::string>(name, use, help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::add_number(const char* name, uint64_t& value, const char* type, const std::string& help, Range range) {
  app_->add_option(name, value, help)->transform(whole_number(range))->type_name(type)->capture_default_str();
}

void Parser::add_number(const char* name, int64_t& value, const char* type, const std::string& help) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  app_->add_option(name, value, help)->transform(whole_number({0, kMax}))->type_name(type)->capture_default_str();
}

void Parser::add_number(const char* name, float& value, const char* type, const std::string& help) {
  app_->add_option(name, value, help)->type_name(type)->capture_default_str();
}

void Parser::add_choice(const char* name, std::string& value, const std::vector<std::string_view>& choices,
                        const char* type, const std::string& help) {
  const std::vector<std::string> words(choices.begin(), choices.end());
  app_->add_option(name, value, help)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(type)
      ->capture_default_str();
}

void Parser::add_list(const char* name, std::vector<std::string>& values, const char* type, const std::string& help) {
  app_->add_option(name, values, help)->type_name(type)->allow_extra_args(false);  // the next word may be DATA
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
  app_->set_version_flag("--version", version_line());
  app_->require_subcommand(0, 1);  // without a command, `run` lists the commands
}

CommandLine::~CommandLine() = default;

Parser CommandLine::root() { return Parser(app_.get()); }

int CommandLine::run(int argc, char** argv, const Run& run) {
  try {
    app_->parse(argc, argv);
    return run();
  } catch (const CLI::Success& asked) {  // --help, --version
    const int code = app_->exit(asked);
    std::cout.flush();
    return code;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app_->remaining(true);
    const std::string found = extras.empty() ? std::string() : extras.front();
    throw Error("unknown {} '{}'; run `{} --help`", found.starts_with('-') ? "flag" : "command", found,
                command_line_of(*app_));
  } catch (const CLI::ParseError& error) {
    throw Error("{}; run `{} --help`", error.what(), command_line_of(*app_));
  }
}

}  // namespace quern::cli
