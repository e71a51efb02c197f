// Checks the consistency of a byte-level BPE model.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "data/bpe_tokenizer.h"

namespace quern::data {

// Throws the Errors documented at the constructor of BpeTokenizer.
void check_bpe_model(const BpeModel& model, std::string_view where);

// The id of each single byte in a checked model.
std::array<int32_t, 256> ids_of_bytes(const BpeModel& model);

}  // namespace quern::data
