// Finds the first NaN or infinite value in a step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nn/parameter_table.h"
#include "nn/watch.h"

namespace quern::train {

// The location of the first value of a step that is not finite.
struct BadValue {
  std::string tensor;     // "h.2.mlp.c_fc" of forward, "gradient of h.2.mlp.c_fc.weight", "weight h.2.ln_1.weight"
  bool nan = false;       // otherwise infinite
  uint64_t sequence = 0;  // within the step; 0 for a weight
  bool operator==(const BadValue&) const = default;
};

// "NaN" or "infinity".
std::string_view kind_of(const BadValue& where);

// The first tensor with a value that is not finite, in weights or another buffer with that layout.
std::optional<BadValue> first_bad_tensor(const nn::ParameterTable& layout, std::span<const float> values);

// Checks every tensor that a pass computes, in order, until one is not finite.
class FirstBad : public nn::Watch {
 public:
  void saw(std::string_view name, const kernels::SavedTensor& values, size_t count, uint32_t sequence) override;

  const std::optional<BadValue>& where() const { return where_; }

 private:
  std::optional<BadValue> where_;
};

}  // namespace quern::train
