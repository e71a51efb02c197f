#include "chat/chat_history.h"

#include <algorithm>

namespace quern::chat {
namespace {

using Json = nlohmann::ordered_json;

Json message(const char* role, const std::string& content) { return {{"role", role}, {"content", content}}; }

}  // namespace

void ChatHistory::set_system(const std::string& text) {
  system_ = Json::array();
  if (!text.empty()) system_.push_back(message("system", text));
}

void ChatHistory::add(const std::string& question, const std::string& answer) {
  exchanges_.push_back(message("user", question));
  exchanges_.push_back(message("assistant", answer));
}

bool ChatHistory::undo() {
  if (exchanges_.empty()) return false;
  exchanges_.erase(exchanges_.end() - 2, exchanges_.end());
  hidden_ = std::min(hidden_, exchanges_.size());
  return true;
}

void ChatHistory::clear() {
  exchanges_ = Json::array();
  hidden_ = 0;
}

Json ChatHistory::from(size_t first) const {
  Json messages = system_;
  for (size_t i = first; i < exchanges_.size(); ++i) messages.push_back(exchanges_[i]);
  return messages;
}

Json ChatHistory::asking(const std::string& question) const {
  Json messages = from(hidden_);
  messages.push_back(message("user", question));
  return messages;
}

std::string ChatHistory::record() const { return json_text(Json{{"messages", from(0)}}); }

}  // namespace quern::chat
