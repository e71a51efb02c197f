// Whether the parts of a byte-level BPE fit together.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "data/bpe_tokenizer.h"

namespace quern::data {

// Throws the Errors that the constructor of BpeTokenizer promises.
void check_bpe_model(const BpeModel& model, std::string_view where);

// The id of each single byte in a model that was checked.
std::array<int32_t, 256> ids_of_bytes(const BpeModel& model);

}  // namespace quern::data
