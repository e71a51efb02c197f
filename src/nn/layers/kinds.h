// The variants of layers that a model chooses from.
#pragma once

#include <cstdint>

namespace quern::nn {

enum class NormKind : uint8_t {
  kLayernorm,  // with weight and bias
  kRmsnorm,    // divides by the root of the mean square; no parameters
};
enum class Positions : uint8_t {
  kLearned,  // a table of vectors, added to the token embedding
  kRotary,   // rotates queries and keys by angles proportional to the position
};
enum class Activation : uint8_t {
  kGelu,   // the tanh approximation
  kRelu2,  // max(x, 0)^2
};

}  // namespace quern::nn
