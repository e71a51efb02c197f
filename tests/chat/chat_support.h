// A tokenizer and templates for tests of conversations.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_template.h"
#include "chat/conversation.h"
#include "chat/marked_tokens.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer.h"

namespace quern::chat::test {

// Ids 0 ... 255 are bytes in the order of GPT-2's alphabet; then come these special tokens.
inline std::unique_ptr<data::Tokenizer> byte_tokenizer(const std::vector<std::string>& special,
                                                       std::string_view end_of_text = {}) {
  data::TokenizerParts parts;
  for (const uint8_t byte : data::bytes_in_alphabet_order()) {
    parts.tokens.push_back(data::to_alphabet(std::string(1, static_cast<char>(byte))));
  }
  parts.types.assign(parts.tokens.size(), data::TokenType::kNormal);
  for (const std::string& token : special) {
    if (token == end_of_text) parts.eos = static_cast<int32_t>(parts.tokens.size());
    parts.tokens.push_back(token);
    parts.types.push_back(data::TokenType::kControl);
  }
  return data::make_tokenizer(std::move(parts), "test");
}

inline std::unique_ptr<data::Tokenizer> chatml_tokenizer() {
  return byte_tokenizer({"<|im_start|>", "<|im_end|>", "<|endoftext|>"}, "<|endoftext|>");
}

inline Conversation parsed(std::string_view line) { return ConversationParser("a.jsonl").parse(line, 3); }

// The bytes of a sequence, with [brackets] around what is trained.
inline std::string marked_text(const MarkedTokens& sequence, const data::Tokenizer& tokenizer) {
  std::string text;
  bool inside = false;
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    if ((sequence.trained[i] != 0) != inside) text += inside ? ']' : '[';
    inside = sequence.trained[i] != 0;
    text += tokenizer.bytes_of(sequence.ids[i]);
  }
  return inside ? text + ']' : text;
}

inline std::vector<std::string> marked_texts(std::string_view line, const ChatTemplate* chat_template,
                                             const data::Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (const MarkedTokens& sequence : mark(parsed(line), chat_template, tokenizer)) {
    texts.push_back(marked_text(sequence, tokenizer));
  }
  return texts;
}

}  // namespace quern::chat::test
