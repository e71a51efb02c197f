// The tokenizer of a model as files that AutoTokenizer of Hugging Face `transformers` opens.
#pragma once

#include <cstddef>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"

namespace quern::checkpoint {

// tokenizer.json, if there is a tokenizer, and tokenizer_config.json, which names its class. Without the second,
// AutoTokenizer takes the class from config.json, GPT2Tokenizer, and returns one with an empty vocabulary that encodes
// every text to nothing; with the second alone it raises an error.
std::vector<ExtraFile> hf_tokenizer_files(const data::Tokenizer* tokenizer, size_t context);

}  // namespace quern::checkpoint
