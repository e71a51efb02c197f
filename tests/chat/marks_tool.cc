// Drives the marking of conversations by hand, for masks_oracle_test.py.
//   marks_tool MODEL FILE    prints, for each record of FILE, one line: {"sequences": [{"ids": [...], "trained":
//   [...]}]}
// MODEL is a folder with tokenizer.json, tokenizer_config.json and chat_template.jinja; without the last, chatml is
// used.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "chat/conversation_files.h"
#include "chat/marked_tokens.h"
#include "core/error.h"
#include "core/files.h"

namespace quern::chat {
namespace {

constexpr size_t kMaxFile = size_t{16} << 20;

void print_marks(const std::vector<MarkedTokens>& sequences) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MarkedTokens& one : sequences) list.push_back({{"ids", one.ids}, {"trained", one.trained}});
  fmt::print("{}\n", json_text(nlohmann::ordered_json{{"sequences", list}}));
}

ChatTemplate template_of(const std::filesystem::path& model) {
  if (!std::filesystem::exists(model / "chat_template.jinja")) return ChatTemplate::chatml();
  const std::string text = read_file(model / "chat_template.jinja", kMaxFile);
  const std::string config = read_file(model / "tokenizer_config.json", kMaxFile);
  return *load_chat_template({.folder = model.string(), .chat_template = &text, .tokenizer_config = &config});
}

int run(const std::vector<std::string>& words) {
  if (words.size() != 2) throw Error("[marks_tool] expected MODEL FILE; see tests/chat/marks_tool.cc");
  const ChatTemplate chat_template = template_of(words[0]);
  const auto tokenizer = data::Tokenizer::load_from(words[0]);
  for_each_conversation(words[1], [&](Conversation&& conversation) {
    print_marks(mark(conversation, &chat_template, *tokenizer));
    return true;
  });
  return 0;
}

}  // namespace
}  // namespace quern::chat

int main(int argc, char** argv) try {
  return quern::chat::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
