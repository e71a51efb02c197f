// Llama 3's scaling of rotary positions, as GGUF files have it: a tensor of what each frequency is divided by.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::formats {

inline constexpr const char* kRopeFactors = "rope_freqs.weight";

// The divisors of a model with this scaling, one for each pair of a head.
std::vector<float> rope_factors(const nn::RotaryConfig& rotary, size_t head_dim);

// Settings that give these divisors to within 1e-5, or nullopt if there are none. Files do not have the settings
// themselves: different ones can give the same divisors, of which those of Meta's models are preferred.
std::optional<nn::RotaryConfig> rotary_from_factors(double base, std::span<const float> factors);

}  // namespace quern::formats
