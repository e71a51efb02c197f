// The messages of a conversation in progress.
#pragma once

#include <cstddef>
#include <string>

#include "core/json.h"

namespace quern::chat {

class ChatHistory {
 public:
  // Replaces the system message; an empty text removes it.
  void set_system(const std::string& text);

  // Adds a question and its answer.
  void add(const std::string& question, const std::string& answer);

  // Removes the last question and its answer; false if there is none.
  bool undo();

  // Removes everything but the system message.
  void clear();

  // The model no longer sees the first `messages` of those that it still sees, the system message apart.
  void hide(size_t messages) { hidden_ += messages; }

  bool empty() const { return exchanges_.empty(); }

  // What the model sees, with `question` as the last message.
  nlohmann::ordered_json asking(const std::string& question) const;

  // All messages as a record to train on, one line: {"messages": [...]}.
  std::string record() const;

 private:
  nlohmann::ordered_json from(size_t first) const;

  nlohmann::ordered_json system_ = nlohmann::ordered_json::array();  // none or one message
  nlohmann::ordered_json exchanges_ = nlohmann::ordered_json::array();
  size_t hidden_ = 0;
};

}  // namespace quern::chat
