// Gradient statistics of every tensor, and warnings about abnormal values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/gradient.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "run/observer.h"

namespace quern::train {

inline constexpr double kExploding = 100;   // norm of the whole gradient, before clipping
inline constexpr double kVanishing = 1e-7;  // norm of a tensor's gradient

// Combines the workers' measurements of segments in segment order, so that the result does not depend on the number of
// threads.
class Health {
 public:
  // `layout` must outlive this object.
  explicit Health(const ParameterLayout& layout);
  Health(const Health&) = delete;  // not movable either: the report points to the tensors
  Health& operator=(const Health&) = delete;

  // Called by the worker that updated the segment, once per segment and step. Needs no lock: segments do not share
  // data.
  void set_change(size_t segment, const Change& change) { changes_[segment] = change; }

  // Statistics of `gradient`. `updated` is whether set_change() was called for this step. The result is valid until the
  // next call. Does not allocate.
  const HealthReport& report(uint64_t step, const Gradient& gradient, bool updated);

 private:
  const ParameterLayout* layout_;
  std::vector<Change> changes_;  // per segment
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
