// Helpers for tests of templates.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "chat/jinja.h"
#include "core/json.h"
#include "tests/support/message.h"

namespace quern::chat {

inline std::string render(std::string_view text, std::string_view variables = "{}") {
  return JinjaTemplate(text, "chat.jinja").render(parse_ordered_json(variables));
}

// The message of the error in parsing or rendering `text`.
inline std::string failure(std::string_view text, std::string_view variables = "{}") {
  return test::message_of([&] { render(text, variables); });
}

// The templates of tests/chat/templates, by name.
inline std::map<std::string, std::string> load_templates() {
  std::map<std::string, std::string> templates;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_TEMPLATES_FOLDER)) {
    std::ifstream file(entry.path(), std::ios::binary);
    templates[entry.path().stem()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return templates;
}

}  // namespace quern::chat
