// Finds the first NaN or infinite value in a step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "nn/parameters.h"
#include "nn/pass.h"
#include "nn/watch.h"

namespace quern::train {

// The location of the first value of a step that is not finite.
struct BadPlace {
  std::string tensor;     // "h.2.mlp.c_fc" of forward, "gradient of h.2.mlp.c_fc.weight", "weight h.2.ln_1.weight"
  bool nan = false;       // otherwise infinite
  uint64_t sequence = 0;  // within the step; 0 for a weight
  bool operator==(const BadPlace&) const = default;
};

// "NaN" or "infinity".
std::string_view kind_of(const BadPlace& where);

// The first tensor with a value that is not finite, in weights or another buffer with that layout.
std::optional<BadPlace> first_bad_tensor(const ParameterLayout& layout, std::span<const float> values);

// Checks every tensor that a pass reports, in order, until one is not finite.
class FirstBad : public Watch {
 public:
  void saw(const Pass& pass, Stage stage, size_t which) override;

  const std::optional<BadPlace>& where() const { return where_; }

 private:
  void look(std::string_view name, const float* values, size_t n);
  void look(std::string_view name, const SavedTensor& values, size_t n);
  void look_at_block(const Pass& pass, size_t layer);
  void look_at_gradient(const Pass& pass, size_t tensor);

  uint64_t sequence_ = 0;
  std::optional<BadPlace> where_;
};

}  // namespace quern::train
