#include "data/added_tokens.h"

#include <algorithm>
#include <cstring>

namespace quern::data {
namespace {

size_t first_byte(std::string_view text) { return static_cast<unsigned char>(text.front()); }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, [](const AddedToken& a, const AddedToken& b) {
    if (first_byte(a.content) != first_byte(b.content)) return first_byte(a.content) < first_byte(b.content);
    if (a.content.size() != b.content.size()) return a.content.size() > b.content.size();
    return a.content < b.content;
  });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    Range& range = by_first_byte_[first_byte(tokens_[i].content)];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
  if (!tokens_.empty() && first_byte(tokens_.front().content) == first_byte(tokens_.back().content)) {
    only_first_byte_ = static_cast<int>(first_byte(tokens_.front().content));
  }
}

AddedTokens::Found AddedTokens::find(std::string_view text) const noexcept {
  if (tokens_.empty()) return {text.size(), nullptr};
  for (size_t at = 0; at < text.size(); ++at) {
    if (only_first_byte_ >= 0) {  // as in most vocabularies, where they start with "<"
      const void* const next = std::memchr(text.data() + at, only_first_byte_, text.size() - at);
      if (next == nullptr) break;
      at = static_cast<size_t>(static_cast<const char*>(next) - text.data());
    }
    const Range range = by_first_byte_[static_cast<unsigned char>(text[at])];
    for (size_t i = range.begin; i < range.end; ++i) {
      if (text.substr(at).starts_with(tokens_[i].content)) return {at, &tokens_[i]};
    }
  }
  return {text.size(), nullptr};
}

}  // namespace quern::data
