// How the gradient of every tensor does, and what it means when it does badly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/gradient.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "train/observer.h"

namespace quern::train {

inline constexpr double kExploding = 100;   // norm of the whole gradient, before clipping
inline constexpr double kVanishing = 1e-7;  // norm of a tensor's gradient

// Puts together what the workers measured segment by segment, in the order of the segments: the same for any number of
// threads.
class Health {
 public:
  // `layout` must outlive this.
  explicit Health(const ParameterLayout& layout);
  Health(const Health&) = delete;  // and no move: the report points to the tensors
  Health& operator=(const Health&) = delete;

  // By the worker that updated the segment, each segment once a step. No lock: a place of its own.
  void set_change(size_t segment, const Change& change) { changes_[segment] = change; }

  // What `gradient` is like. `updated`: the changes of this step are there. Valid until the next call; allocates
  // nothing.
  const HealthReport& report(uint64_t step, const Gradient& gradient, bool updated);

 private:
  const ParameterLayout* layout_;
  std::vector<Change> changes_;  // one a segment
  std::vector<TensorHealth> tensors_;
  HealthReport report_;
};

// Turns reports into warnings that say what to try. What lasts is told once, and again when it comes back.
class HealthWarnings {
 public:
  std::vector<std::string> of(const HealthReport& report);

 private:
  enum class Verdict : uint8_t { kFine, kNan, kInfinite, kDead, kVanishing };
  static Verdict judge(const TensorHealth& tensor);

  std::vector<Verdict> known_;  // one a tensor
  bool exploding_ = false, vanishing_ = false;
};

}  // namespace quern::train
