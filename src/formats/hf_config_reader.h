// Reads config.json of a Hugging Face folder: models of type gpt2, llama, qwen2 and qwen3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::formats {

inline constexpr size_t kMaxHfConfigBytes = size_t{1} << 20;

// What config.json says about a model.
struct HfDescription {
  nn::ModelConfig model;                  // its context is the maximum number of positions
  double dropout = 0.0;                   // in full precision
  std::optional<int32_t> bos = {};        // bos_token_id
  std::vector<int32_t> eos = {};          // eos_token_id: none, one or several
  std::optional<int32_t> pad = {};        // pad_token_id
  std::vector<std::string> remarks = {};  // what could not be represented and does not change the model's output
};

// Both spellings of older and newer versions of transformers are understood: rope_theta with rope_scaling, or
// rope_parameters. Fields that are not known are passed over. Error, with the field and its value, for a field that is
// missing, malformed or out of range, and for one that changes the model's output in a way that Quern does not support.
// `where` is for messages.
HfDescription parse_hf_config(std::string_view text, std::string_view where);

}  // namespace quern::formats
