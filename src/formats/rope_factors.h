// Llama 3's scaling of rotary positions, as GGUF files have it: a tensor of what each frequency is divided by.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::formats {

inline constexpr const char* kRopeFactors = "rope_freqs.weight";

// Keys with the settings themselves, which Quern adds to the tensor.
inline constexpr const char* kRopeFactorKey = "quern.rope.factor";
inline constexpr const char* kRopeLowKey = "quern.rope.low_frequency";
inline constexpr const char* kRopeHighKey = "quern.rope.high_frequency";
inline constexpr const char* kRopeContextKey = "quern.rope.original_context";

// The divisors of a model with this scaling, one for each pair of a head.
std::vector<float> rope_factors(const nn::RotaryConfig& rotary, size_t head_dim);

// Whether settings give these divisors to within 1e-5.
bool gives_factors(const nn::RotaryConfig& rotary, std::span<const float> factors);

// Settings that do, or nullopt if there are none. Files of other programs do not have the settings themselves:
// different ones can give the same divisors, of which those of Meta's models are preferred.
std::optional<nn::RotaryConfig> rotary_from_factors(double base, std::span<const float> factors);

}  // namespace quern::formats
