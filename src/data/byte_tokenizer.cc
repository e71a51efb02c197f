#include "data/byte_tokenizer.h"

#include <algorithm>

#include "data/tokenizer_json.h"

namespace quern::data {
namespace {

TokenTable all_bytes() {
  TokenTable tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.add(std::string(1, static_cast<char>(static_cast<unsigned char>(byte))));
  return tokens;
}

}  // namespace

ByteTokenizer::ByteTokenizer() : Tokenizer(all_bytes()) {}

void ByteTokenizer::encode_to(std::string_view text, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  ids.resize(before + text.size());
  std::ranges::transform(text, ids.begin() + static_cast<ptrdiff_t>(before),
                         [](char byte) { return static_cast<int32_t>(static_cast<unsigned char>(byte)); });
}

std::string ByteTokenizer::to_json() const { return byte_tokenizer_json(); }

}  // namespace quern::data
