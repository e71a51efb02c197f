// A token is a character (a Unicode code point) of a fixed set, as in nanoGPT's character models.
#pragma once

#include "data/tokenizer.h"

namespace quern::data {

// A character outside the set is an Error with its byte position that names it and up to four others, and so is text
// that is not UTF-8: a character model has no id for unseen characters, and dropping them would break the round trip.
class CharTokenizer final : public Tokenizer {
 public:
  static constexpr size_t kMaxCharacters = 65535;  // ids fit in uint16, whose maximum marks a gap

  // Id i is characters[i]. There must be 1 to kMaxCharacters characters, distinct and valid (no surrogates); otherwise
  // throws an Error that starts with `where`.
  CharTokenizer(std::span<const uint32_t> characters, std::string_view where);

  // The characters of `text`, in order of their code points.
  static std::unique_ptr<CharTokenizer> from_text(std::string_view text, std::string_view where);

  std::string_view name() const noexcept override { return "char"; }
  void encode_to(std::string_view text, std::vector<int32_t>& ids) const override;
  void encode_part_to(std::string_view text, bool, std::vector<int32_t>& ids) const override { encode_to(text, ids); }
  std::string to_json() const override;
  TokenizerParts parts() const override;

 private:
  void append_ids(std::string_view text, std::vector<int32_t>& ids) const;
  [[noreturn]] void fail_unknown(std::string_view text, size_t at) const;

  std::vector<uint16_t> id_of_;  // by code point, up to the largest of the set
};

// Collects the characters of texts that are too many or too large for one string.
class CharTokenizerBuilder {
 public:
  // Error, with `where` and the offset, if `text` is not UTF-8. A character must not be split across two calls.
  void add(std::string_view text, std::string_view where);

  // Error if nothing was added, or too many different characters.
  std::unique_ptr<CharTokenizer> build(std::string_view where) const;

 private:
  std::vector<bool> seen_;  // by code point
};

}  // namespace quern::data
