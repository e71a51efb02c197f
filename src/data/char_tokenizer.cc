#include "data/char_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/tokenizer_json.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr uint16_t kGap = 0xFFFF;
static_assert(kGap >= CharTokenizer::kMaxCharacters);

[[noreturn]] void fail_invalid(std::string_view where, std::string_view text, size_t at) {
  throw Error("[tokenizer] {}: byte {}: expected UTF-8, found byte 0x{:02x}", where, at,
              static_cast<unsigned char>(text[at]));
}

TokenTable as_tokens(std::span<const uint32_t> characters, std::string_view where) {
  if (characters.empty()) throw Error("[tokenizer] {}: expected at least one character, found none", where);
  if (characters.size() > CharTokenizer::kMaxCharacters) {
    throw Error("[tokenizer] {}: expected at most {} different characters, found {}", where,
                CharTokenizer::kMaxCharacters, characters.size());
  }
  TokenTable tokens;
  for (const uint32_t character : characters) {
    if (character > kMaxCodePoint || (character >= 0xD800 && character <= 0xDFFF)) {
      throw Error("[tokenizer] {}: id {}: expected a character, found U+{:04X}", where, tokens.size(), character);
    }
    std::string bytes;
    append_utf8(character, bytes);
    tokens.add(bytes);
  }
  return tokens;
}

}  // namespace

CharTokenizer::CharTokenizer(std::span<const uint32_t> characters, std::string_view where)
    : Tokenizer(as_tokens(characters, where)), id_of_(*std::ranges::max_element(characters) + size_t{1}, kGap) {
  for (size_t id = 0; id < characters.size(); ++id) {
    uint16_t& found = id_of_[characters[id]];
    if (found != kGap) {
      throw Error("[tokenizer] {}: id {}: U+{:04X} has id {} already", where, id, characters[id], found);
    }
    found = static_cast<uint16_t>(id);
  }
}

std::unique_ptr<CharTokenizer> CharTokenizer::from_text(std::string_view text, std::string_view where) {
  CharTokenizerBuilder builder;
  builder.add(text, where);
  return builder.build(where);
}

void CharTokenizer::encode_to(std::string_view text, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  try {
    append_ids(text, ids);
  } catch (...) {
    ids.resize(before);
    throw;
  }
}

void CharTokenizer::append_ids(std::string_view text, std::vector<int32_t>& ids) const {
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = read_code_point(text, at);
    if (next.length == 0) fail_invalid("text", text, at);
    const uint16_t id = next.value < id_of_.size() ? id_of_[next.value] : kGap;
    if (id == kGap) fail_unknown(text, at);
    ids.push_back(id);
    at += next.length;
  }
}

// Names the unknown characters from `at` on, so that a text needs correcting only once.
void CharTokenizer::fail_unknown(std::string_view text, size_t at) const {
  constexpr size_t kMaxNamed = 5;
  std::vector<uint32_t> unknown;
  std::vector<std::string> named;
  for (size_t i = at; i < text.size();) {
    const CodePoint next = read_code_point(text, i);
    if (next.length == 0) break;
    const bool known = next.value < id_of_.size() && id_of_[next.value] != kGap;
    if (!known && std::ranges::find(unknown, next.value) == unknown.end()) {
      unknown.push_back(next.value);
      named.push_back(fmt::format("{} (U+{:04X})", in_quotes(text.substr(i, next.length)), next.value));
    }
    if (unknown.size() > kMaxNamed) break;
    i += next.length;
  }
  const bool more = named.size() > kMaxNamed;
  if (more) named.resize(kMaxNamed);
  throw Error(
      "[tokenizer] text: byte {}: expected one of the {} characters of the vocabulary, found {}{}; leave them out, or "
      "use the byte or bpe tokenizer, which take any text",
      at, vocabulary_size(), fmt::join(named, ", "), more ? " and others" : "");
}

std::string CharTokenizer::to_json() const { return char_tokenizer_json(tokens()); }

void CharTokenizerBuilder::add(std::string_view text, std::string_view where) {
  if (seen_.empty()) seen_.resize(kMaxCodePoint + size_t{1});
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = read_code_point(text, at);
    if (next.length == 0) fail_invalid(where, text, at);
    seen_[next.value] = true;
    at += next.length;
  }
}

std::unique_ptr<CharTokenizer> CharTokenizerBuilder::build(std::string_view where) const {
  std::vector<uint32_t> characters;
  for (uint32_t value = 0; value < seen_.size(); ++value) {
    if (seen_[value]) characters.push_back(value);
  }
  return std::make_unique<CharTokenizer>(characters, where);
}

}  // namespace quern::data
