// Exports a model to a folder that Hugging Face `transformers` opens: AutoModelForCausalLM and AutoTokenizer.
//
//   model.safetensors       weights, fp32
//   config.json             the model's dimensions
//   generation_config.json  where generation ends; only if the tokenizer has an end of text
//   tokenizer.json, tokenizer_config.json
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"

namespace quern::checkpoint {

struct HfModel {
  std::span<const TensorRef> weights;
  HfConfig config;                             // its end_of_text is that of the tokenizer
  const data::Tokenizer* tokenizer = nullptr;  // null: AutoTokenizer will raise an error
};

// Writes the folder, complete or not at all, and returns the names of its files. Error if it exists and is not empty:
// an export never replaces a file.
std::vector<std::string> export_hf(const HfModel& model, std::filesystem::path folder);

}  // namespace quern::checkpoint
