// Records to fine-tune on: conversations, prompts with their completions, or plain text, one JSON object per line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace quern::chat {

enum class RecordKind : uint8_t {
  kMessages,          // {"messages": [{"role": "user", "content": "..."}, ...], "tools": [...]}
  kPromptCompletion,  // {"prompt": "...", "completion": "..."}
  kText,              // {"text": "..."}
};

// "messages", "prompt/completion" or "text".
std::string_view name_of(RecordKind kind);

struct Conversation {
  RecordKind kind = RecordKind::kMessages;
  std::string where;  // FILE:LINE, for messages
  // As the chat template sees them, with all their fields but "train". A prompt and its completion are a message of the
  // user and one of the assistant. Empty for text.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools = nullptr;  // an array, or null
  std::string text;                        // of kText
  // For each message, whether the model learns to say it; one value for text. Only true for the assistant's.
  std::vector<bool> trained;
};

// Parses the records of one file. The first decides which kind the file has, and all others must be of that kind.
class ConversationParser {
 public:
  // `file` is its name in messages.
  explicit ConversationParser(std::string file) : file_(std::move(file)) {}

  // The record in line `number` of the file. Other fields than those above are ignored.
  //
  // "train": false in a record or a message excludes it from the loss; that of a message overrides that of its record.
  // The parts of a content that is a list of {"type": "text", "text": ...} are joined.
  //
  // The line is untrusted. Error that starts with [data] FILE:LINE, and for broken JSON the column in bytes, unless it
  // is such a record: known roles, at least one message of the assistant, contents that are text (an assistant that
  // calls tools needs none).
  Conversation parse(std::string_view line, uint64_t number);

  std::optional<RecordKind> kind() const { return kind_; }

 private:
  RecordKind kind_of(const nlohmann::ordered_json& record, const std::string& where);

  std::string file_;
  std::optional<RecordKind> kind_;
  uint64_t first_line_ = 0;
};

}  // namespace quern::chat
