// The tokenizer of a model as files that AutoTokenizer of Hugging Face `transformers` opens.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"

namespace quern::formats {

// tokenizer.json, if there is a tokenizer, and tokenizer_config.json, which names its class. Without the second,
// AutoTokenizer takes the class from config.json, GPT2Tokenizer, and returns one with an empty vocabulary that encodes
// every text to nothing; with the second alone it raises an error. `files` are those of an imported model
// (formats/model_files.h): they are part of the result, and their tokenizer_config.json is used as it is.
std::vector<checkpoint::ExtraFile> hf_tokenizer_files(const data::Tokenizer* tokenizer, size_t context,
                                                      std::span<const checkpoint::ExtraFile> files);

}  // namespace quern::formats
