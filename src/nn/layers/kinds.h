// The variants of layers that a model chooses from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::nn {

// Which architecture a model has. The names and layouts of its parameters are those of Hugging Face.
enum class Family : uint8_t {
  kGpt2,
  kLlama,
  kQwen2,  // Llama with biases of queries, keys and values
  kQwen3,  // Llama with a norm of each head's queries and keys
};
enum class NormKind : uint8_t {
  kLayernorm,  // with weight and bias
  kRmsnorm,    // divides by the root of the mean square
};
enum class Positions : uint8_t {
  kLearned,  // a table of vectors, added to the token embedding
  kRotary,   // rotates queries and keys by angles proportional to the position
};
enum class Activation : uint8_t {
  kGelu,   // the tanh approximation
  kRelu2,  // max(x, 0)^2
};

// How the angles of rotary positions are changed for contexts longer than those of the first training.
enum class RotaryScaling : uint8_t {
  kNone,
  kLinear,  // every frequency is divided by the factor
  kLlama3,  // low frequencies are divided by the factor, high ones are not, with a transition between them
};

// The angles of rotary positions: pair j of a head is rotated by position * base^(-2j / head_dim), as scaled.
struct RotaryConfig {
  double base = 10000.0;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1.0;  // of both kinds of scaling
  // llama3: with wave length w = 2 pi / frequency, frequencies with original_context / w below low_frequency are
  // divided by the factor, those above high_frequency are unchanged.
  double low_frequency = 1.0, high_frequency = 4.0;
  size_t original_context = 8192;
  bool operator==(const RotaryConfig&) const = default;
};

}  // namespace quern::nn
