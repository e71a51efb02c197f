// Encodes a conversation span by span: what the model is given, and what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/marked_tokens.h"
#include "chat/turns.h"
#include "data/tokenizer.h"

namespace quern::chat {

class SpanEncoder {
 public:
  explicit SpanEncoder(const data::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Trained text never gets a space that a tokenizer puts after an added token: it continues the prompt.
  void add(std::string_view span, bool trained) {
    using data::Before;
    const Before before = marked_.ids.empty()        ? Before::kNothing
                          : after_token_ && !trained ? Before::kAddedToken
                                                     : Before::kText;
    tokenizer_.encode_span_to(span, before, marked_.ids);
    marked_.trained.resize(marked_.ids.size(), trained ? 1 : 0);
    if (!span.empty()) after_token_ = added_token_at_end(span, tokenizer_) != nullptr;
  }
  void add(std::optional<int32_t> id, bool trained) {
    if (!id) return;
    marked_.ids.push_back(*id);
    marked_.trained.push_back(trained ? 1 : 0);
  }
  // In front of everything.
  void prepend(int32_t id) {
    marked_.ids.insert(marked_.ids.begin(), id);
    marked_.trained.insert(marked_.trained.begin(), 0);
  }
  // Turns that continue each other.
  void add(const std::vector<Turn>& turns) {
    size_t end = 0;
    for (const Turn& turn : turns) {
      const std::string_view text = turn.text;
      add(text.substr(end, turn.begin - end), false);
      add(text.substr(turn.begin), true);
      end = text.size();
    }
  }

  const std::vector<int32_t>& ids() const { return marked_.ids; }
  MarkedTokens finish() { return std::move(marked_); }

 private:
  const data::Tokenizer& tokenizer_;
  MarkedTokens marked_;
  bool after_token_ = false;
};

}  // namespace quern::chat
