// Checks the consistency of a BPE model.
#pragma once

#include <string_view>

#include "data/bpe_model.h"

namespace quern::data {

// Throws the Errors documented at the constructor of BpeTokenizer. Removes merges of SentencePiece that involve byte,
// unknown or special tokens: some converters write them, and ordinary text must not turn into a special token.
void check_bpe_model(BpeModel& model, std::string_view where);

}  // namespace quern::data
