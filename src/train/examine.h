// Finds where a step goes bad: the first number on its way that is NaN or infinite.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "nn/parameters.h"
#include "nn/pass.h"
#include "nn/watch.h"

namespace quern::train {

// The first place of a step with a number that is not finite.
struct BadPlace {
  std::string tensor;     // "h.2.mlp.c_fc" of forward, "gradient of h.2.mlp.c_fc.weight", "weight h.2.ln_1.weight"
  bool nan = false;       // else infinite
  uint64_t sequence = 0;  // of the step; the first for a weight
  bool operator==(const BadPlace&) const = default;
};

// "NaN" or "infinity".
std::string_view kind_of(const BadPlace& where);

// The first of the weights, or of anything else with that layout, that is not finite.
std::optional<BadPlace> first_bad_tensor(const ParameterLayout& layout, std::span<const float> values);

// Looks at everything that a pass shows, in order, until something is bad.
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
