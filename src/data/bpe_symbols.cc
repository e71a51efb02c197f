#include "data/bpe_symbols.h"

#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr uint32_t kSpaceSymbolCode = 0x2581;

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

int byte_of_token(std::string_view token) noexcept {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::vector<bool> which_are_added(const BpeModel& model) {
  std::vector<bool> is_added(model.tokens.size());
  for (const AddedToken& token : model.added) is_added[static_cast<size_t>(token.id)] = true;
  return is_added;
}

BpeSymbols::BpeSymbols(const BpeModel& model)
    : characters_(model.is_sentence_piece()), fuse_unknown_(model.rules.fuse_unknown), unk_(model.unk.value_or(kNone)) {
  of_byte_.fill(kNone);
  of_ascii_.fill(kNone);
  const std::vector<bool> is_added = which_are_added(model);
  // A byte may also exist as an added token with another id; plain text then uses the plain one.
  for (const bool added : {true, false}) {
    for (size_t id = 0; id < model.tokens.size(); ++id) {
      const std::string& token = model.tokens[id];
      if (is_added[id] != added || model.is_unused(id)) continue;
      if (!characters_) {
        if (token.size() == 1) of_byte_[static_cast<unsigned char>(token[0])] = static_cast<int32_t>(id);
        continue;
      }
      if (const int byte = byte_of_token(token); byte >= 0 && model.rules.byte_fallback) {
        of_byte_[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
      }
      const CodePoint first = read_code_point(token, 0);
      if (first.length != token.size()) continue;
      if (first.value < of_ascii_.size()) {
        of_ascii_[first.value] = static_cast<int32_t>(id);
      } else {
        of_character_[first.value] = static_cast<int32_t>(id);
      }
    }
  }
  if (!characters_) return;
  const auto space = of_character_.find(kSpaceSymbolCode);
  of_ascii_[' '] = space == of_character_.end() ? kNone : space->second;
}

void BpeSymbols::append(std::string_view text, std::vector<int32_t>& ids) const {
  if (characters_) return append_characters(text, ids);
  bool unknown = false;
  for (const char byte : text) {
    const int32_t id = of_byte_[static_cast<unsigned char>(byte)];
    if (id == kNone) {
      append_unknown(unknown, ids);
    } else {
      ids.push_back(id);
    }
    unknown = id == kNone;
  }
}

void BpeSymbols::append_unknown(bool follows_unknown, std::vector<int32_t>& ids) const {
  if (unk_ != kNone && !(follows_unknown && fuse_unknown_)) ids.push_back(unk_);
}

void BpeSymbols::append_characters(std::string_view text, std::vector<int32_t>& ids) const {
  bool unknown = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = read_code_point(text, at);
    const size_t length = next.length == 0 ? 1 : next.length;
    int32_t id = kNone;
    if (next.length > 0 && next.value < of_ascii_.size()) {
      id = of_ascii_[next.value];
    } else if (const auto found = of_character_.find(next.value); next.length > 0 && found != of_character_.end()) {
      id = found->second;
    }
    const bool as_bytes = id == kNone && of_byte_[0] != kNone;
    if (id != kNone) {
      ids.push_back(id);
    } else if (as_bytes) {
      for (const char byte : text.substr(at, length)) ids.push_back(of_byte_[static_cast<unsigned char>(byte)]);
    } else {
      append_unknown(unknown, ids);
    }
    unknown = id == kNone && !as_bytes;
    at += length;
  }
}

}  // namespace quern::data
