#include "chat/chat_template.h"

#include <utility>
#include <vector>

#include "core/error.h"

namespace quern::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kChatml = R"({% for message in messages %}
{% if tools or message.tool_calls or message.content is not string %}
{{ raise_exception("chatml has no form for tools; choose the template of a model that has") }}
{% endif %}
{{ "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>" }}
{% endfor %}
{% if add_generation_prompt %}
{{ "<|im_start|>assistant" }}
{% endif %}
)";

// A file of the model as an object; an empty one if the file is missing or something else.
Json object_in(const std::string* text) {
  if (text == nullptr) return Json::object();
  Json json = parse_ordered_json(*text);
  return json.is_object() ? json : Json::object();
}

std::optional<std::string> token_in(const Json& file, const char* name) {
  if (!file.contains(name)) return std::nullopt;
  const Json& value = file[name];
  if (value.is_string()) return value.get<std::string>();
  const bool is_object = value.is_object() && value.contains("content") && value["content"].is_string();
  return is_object ? std::optional(value["content"].get<std::string>()) : std::nullopt;
}

std::string default_of(const Json& named, const std::string& where) {
  std::vector<std::string> names;
  for (const Json& one : named) {
    const bool is_named = one.is_object() && one.contains("name") && one["name"].is_string();
    const std::string name = is_named ? one["name"].get<std::string>() : std::string();
    if (name == "default" && one.contains("template") && one["template"].is_string()) {
      return one["template"].get<std::string>();
    }
    names.push_back(in_quotes(name, 40));
  }
  throw Error("[template] {}: expected a template with the name 'default', found {}", where,
              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

std::optional<std::string> template_in(const std::string* config, const std::string& where) {
  const Json json = object_in(config);
  if (!json.contains("chat_template") || json["chat_template"].is_null()) return std::nullopt;
  const Json& found = json["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  if (found.is_array()) return default_of(found, where);
  throw Error("[template] {}: chat_template: expected a string or a list, found something else", where);
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view text, std::string name, TokenTexts tokens)
    : text_(text), template_(text, std::move(name)), variables_(Json::object()) {
  const auto add = [&](const char* variable, std::optional<std::string>& token) {
    if (token) variables_[variable] = std::move(*token);
  };
  add("bos_token", tokens.bos);
  add("eos_token", tokens.eos);
  add("pad_token", tokens.pad);
  add("unk_token", tokens.unk);
}

ChatTemplate ChatTemplate::chatml() { return ChatTemplate(kChatml, "chatml"); }

void ChatTemplate::fix_date() {
  constexpr std::time_t kNoon = 1'721'995'200;  // 2024-07-26 12:00 UTC
  template_.fix_time(kNoon);
}

std::string ChatTemplate::render(const Json& messages, bool add_generation_prompt, const Json& tools) const {
  Json variables = variables_;
  variables["messages"] = messages;
  variables["tools"] = tools;
  variables["add_generation_prompt"] = add_generation_prompt;
  return template_.render(variables);
}

TokenTexts token_texts(const TemplateFiles& files) {
  const Json config = object_in(files.tokenizer_config), map = object_in(files.special_tokens);
  const auto find = [&](const char* name) {
    std::optional<std::string> token = token_in(config, name);
    return token ? token : token_in(map, name);
  };
  return {.bos = find("bos_token"), .eos = find("eos_token"), .pad = find("pad_token"), .unk = find("unk_token")};
}

std::optional<ChatTemplate> load_chat_template(const TemplateFiles& files) {
  if (files.chat_template != nullptr) {
    return ChatTemplate(*files.chat_template, files.folder + "/chat_template.jinja", token_texts(files));
  }
  const std::string where = files.folder + "/tokenizer_config.json";
  const std::optional<std::string> text = template_in(files.tokenizer_config, where);
  if (!text) return std::nullopt;
  return ChatTemplate(*text, where, token_texts(files));
}

}  // namespace quern::chat
