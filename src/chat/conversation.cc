#include "chat/conversation.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace quern::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

std::string_view type_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

// The type of a field, for messages.
std::string_view found_in(const Json& object, const char* field) {
  return object.contains(field) ? type_of(object[field]) : "no such field";
}

std::string fields_of(const Json& object) {
  constexpr size_t kMaxShown = 10;
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) {
    if (names.size() < kMaxShown) names.push_back(in_quotes(name, 40));
  }
  if (object.size() > kMaxShown) names.emplace_back("more");
  return names.empty() ? "no fields" : fmt::format("{}", fmt::join(names, ", "));
}

std::string checked_text(const Json& record, const char* field, const std::string& where) {
  if (record.contains(field) && record[field].is_string()) return record[field].get<std::string>();
  throw Error("[data] {}: \"{}\": expected a string, found {}", where, field, found_in(record, field));
}

// The value of "train".
bool is_trained(const Json& object, bool otherwise, const std::string& where) {
  if (!object.contains("train")) return otherwise;
  if (!object["train"].is_boolean()) {
    throw Error("[data] {}: \"train\": expected true or false, found {}", where, type_of(object["train"]));
  }
  return object["train"].get<bool>();
}

std::string joined_parts(const Json& parts, const std::string& where) {
  std::string text;
  for (const Json& part : parts) {
    const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text") &&
                         part["text"].is_string();
    if (!is_text) {
      throw Error("[data] {}: \"content\": expected parts like {{\"type\": \"text\", \"text\": ...}}, found {}", where,
                  in_quotes(json_text(part), 60));
    }
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

bool calls_tools(const Json& message) {
  return message["role"] == "assistant" && message.contains("tool_calls") && message["tool_calls"].is_array() &&
         !message["tool_calls"].empty();
}

void check_content(Json& message, const std::string& where) {
  const bool is_absent = !message.contains("content") || message["content"].is_null();
  if (is_absent && calls_tools(message)) return;
  if (message.contains("content") && message["content"].is_array()) {
    message["content"] = joined_parts(message["content"], where);
  }
  checked_text(message, "content", where);
}

void check_role(const Json& message, const std::string& where) {
  if (!message.is_object()) throw Error("[data] {}: expected a message, found {}", where, type_of(message));
  const std::string role = checked_text(message, "role", where);
  if (std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end()) return;
  throw Error("[data] {}: \"role\": expected {}, found {}", where, fmt::join(kRoles, ", "), in_quotes(role));
}

// Takes the field "train" out of the message, which templates must not see.
bool take_trained(Json& message, bool otherwise, const std::string& where) {
  const bool is_assistant = message["role"] == "assistant";
  const bool trained = is_trained(message, is_assistant && otherwise, where);
  if (trained && !is_assistant) {
    throw Error("[data] {}: \"train\": expected true only for the assistant, found it for {}", where,
                message["role"].get<std::string>());
  }
  message.erase("train");
  return trained;
}

void add_messages(const Json& record, Conversation& conversation) {
  const std::string& where = conversation.where;
  if (!record["messages"].is_array() || record["messages"].empty()) {
    throw Error("[data] {}: \"messages\": expected at least one message, found {}", where,
                record["messages"].is_array() ? "none" : type_of(record["messages"]));
  }
  const bool otherwise = is_trained(record, true, where);
  for (Json message : record["messages"]) {
    const std::string place = fmt::format("{}: message {}", where, conversation.messages.size() + 1);
    check_role(message, place);
    check_content(message, place);
    conversation.trained.push_back(take_trained(message, otherwise, place));
    conversation.messages.push_back(std::move(message));
  }
  const auto is_assistant = [](const Json& message) { return message["role"] == "assistant"; };
  if (std::none_of(conversation.messages.begin(), conversation.messages.end(), is_assistant)) {
    throw Error("[data] {}: expected a message of the assistant, found none among {}", where,
                conversation.messages.size());
  }
}

void add_tools(const Json& record, Conversation& conversation) {
  if (!record.contains("tools") || record["tools"].is_null()) return;
  if (!record["tools"].is_array()) {
    throw Error("[data] {}: \"tools\": expected an array, found {}", conversation.where, type_of(record["tools"]));
  }
  // Some templates ask whether there are tools, others whether the variable is null: an empty list must mean the same.
  if (!record["tools"].empty()) conversation.tools = record["tools"];
}

void add_prompt(const Json& record, Conversation& conversation) {
  const std::string prompt = checked_text(record, "prompt", conversation.where);
  const std::string completion = checked_text(record, "completion", conversation.where);
  conversation.messages = {{{"role", "user"}, {"content", prompt}}, {{"role", "assistant"}, {"content", completion}}};
  conversation.trained = {false, is_trained(record, true, conversation.where)};
}

void add_text(const Json& record, Conversation& conversation) {
  conversation.text = checked_text(record, "text", conversation.where);
  conversation.trained = {is_trained(record, true, conversation.where)};
}

bool is_of_kind(const Json& record, RecordKind kind) {
  if (kind == RecordKind::kMessages) return record.contains("messages");
  if (kind == RecordKind::kPromptCompletion) return record.contains("prompt") && record.contains("completion");
  return record.contains("text");
}

Json parse_object(std::string_view line, const std::string& where) {
  Json record = parse_ordered_json(line);
  if (record.is_object()) return record;
  if (!record.is_discarded()) throw Error("[data] {}: expected a JSON object, found {}", where, type_of(record));
  if (nested_too_deep(line)) {
    throw Error("[data] {}: expected JSON of at most {} levels, found more", where, kMaxJsonDepth);
  }
  throw Error("[data] {}:{}: expected a JSON object, found a syntax error", where, json_error_byte(line));
}

}  // namespace

std::string_view name_of(RecordKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"messages", "prompt/completion", "text"};
  return kNames[static_cast<size_t>(kind)];
}

Conversation ConversationParser::parse(std::string_view line, uint64_t number) {
  Conversation conversation;
  conversation.where = fmt::format("{}:{}", file_, number);
  const Json record = parse_object(line, conversation.where);
  if (!kind_) first_line_ = number;
  conversation.kind = kind_of(record, conversation.where);
  kind_ = conversation.kind;
  switch (conversation.kind) {
    case RecordKind::kMessages:
      add_messages(record, conversation);
      add_tools(record, conversation);
      break;
    case RecordKind::kPromptCompletion:
      add_prompt(record, conversation);
      break;
    case RecordKind::kText:
      add_text(record, conversation);
  }
  return conversation;
}

RecordKind ConversationParser::kind_of(const Json& record, const std::string& where) {
  for (const RecordKind kind : {RecordKind::kMessages, RecordKind::kPromptCompletion, RecordKind::kText}) {
    if (is_of_kind(record, kind) && (!kind_ || kind_ == kind)) return kind;
  }
  if (!kind_) {
    throw Error("[data] {}: expected \"messages\", \"prompt\" and \"completion\", or \"text\", found {}", where,
                fields_of(record));
  }
  throw Error("[data] {}: expected a record of {}, as in line {}, found {}", where, name_of(*kind_), first_line_,
              fields_of(record));
}

}  // namespace quern::chat
