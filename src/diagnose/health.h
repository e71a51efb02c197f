// Gradient statistics of every tensor, and warnings about abnormal values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameter_table.h"
#include "train/step_context.h"

namespace quern::train {

inline constexpr double kExploding = 100;   // norm of the whole gradient, before clipping
inline constexpr double kVanishing = 1e-7;  // norm of a tensor's gradient

// Gradient statistics of a tensor in one step, before clipping.
struct TensorHealth {
  std::string_view name;
  double norm = 0;
  double mean = 0;
  double largest = 0;       // magnitude; infinite or NaN if one of the values is
  double zeros = 0;         // fraction of values that are 0
  double update_ratio = 0;  // norm of the update over the norm of the weights before it; 0 without an update
};

struct HealthReport {
  uint64_t step = 0;
  double norm = 0;  // of the whole gradient
  std::span<const TensorHealth> tensors;
};

// Combines the workers' measurements of segments in segment order, so that the result does not depend on the number of
// threads.
class Health {
 public:
  // `layout` must outlive this object.
  explicit Health(const nn::ParameterTable& layout);
  Health(const Health&) = delete;  // not movable either: the report points to the tensors
  Health& operator=(const Health&) = delete;

  // Statistics of the last step's gradient; null if it was not measured. The result is valid until the next call. Does
  // not allocate.
  const HealthReport* report(const StepContext& step);

 private:
  const nn::ParameterTable* layout_;
  std::vector<TensorHealth> tensors_;
  HealthReport report_;
};

// Turns reports into warnings with advice. Warns once about a lasting condition, and again if it returns.
class HealthWarnings {
 public:
  std::vector<std::string> of(const HealthReport& report);

 private:
  enum class Verdict : uint8_t { kFine, kNan, kInfinite, kDead, kVanishing };
  static Verdict judge(const TensorHealth& tensor);

  std::vector<Verdict> known_;  // per tensor
  bool exploding_ = false, vanishing_ = false;
};

}  // namespace quern::train
