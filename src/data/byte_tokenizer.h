// The simplest tokenizer: a token is a byte, its id the byte's value.
#pragma once

#include "data/tokenizer.h"

namespace quern::data {

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer();

  std::string_view name() const noexcept override { return "byte"; }
  void encode_to(std::string_view text, std::vector<int32_t>& ids) const override;
  void encode_part_to(std::string_view text, bool, std::vector<int32_t>& ids) const override { encode_to(text, ids); }
  std::string to_json() const override;
  TokenizerParts parts() const override;
};

}  // namespace quern::data
