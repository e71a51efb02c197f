// Renders templates, for jinja_oracle_test.py. Input: lines of JSON, {"template": "...", "variables": {...}}. Prints a
// line for each: {"text": "..."} or {"error": "..."}.
#include <iostream>
#include <string>

#include "chat/jinja.h"
#include "core/error.h"
#include "core/json.h"

namespace {

nlohmann::ordered_json render(const nlohmann::ordered_json& task) {
  try {
    const quern::chat::JinjaTemplate parsed(task.at("template").get_ref<const std::string&>(), "oracle");
    return {{"text", parsed.render(task.at("variables"))}};
  } catch (const quern::Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() try {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << quern::json_text(render(quern::parse_ordered_json(line))) << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
