// Reads config.json of a Hugging Face folder: models of type gpt2, llama, qwen2 and qwen3.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_config.h"

namespace quern::formats {

inline constexpr size_t kMaxHfConfigBytes = size_t{1} << 20;

// Both spellings of older and newer versions of transformers are understood: rope_theta with rope_scaling, or
// rope_parameters. Fields that are not known are passed over. The model's context is the maximum number of positions.
// Error, with the field and its value, for a field that is missing, malformed or out of range, and for one that changes
// the model's output in a way that Quern does not support. `where` is for messages; `remarks`, if not null, receives
// what could not be represented and does not change the output.
HfConfig parse_hf_config(std::string_view text, std::string_view where, std::vector<std::string>* remarks = nullptr);

}  // namespace quern::formats
