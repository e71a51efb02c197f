// The seed of a sampler.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <random>

namespace quern::replay {

// A seed chosen by the caller is the same in every process. Otherwise it is random and differs between processes, so
// that a child of fork() does not draw the same rows as its parent. Immutable; any thread.
class Seed {
 public:
  explicit Seed(std::optional<uint64_t> chosen) : value_(chosen.value_or(0)), chosen_(chosen.has_value()) {
    if (chosen_) return;
    std::random_device device;
    value_ = uint64_t{device()} << 32 | device();
  }

  uint64_t value() const noexcept {
    // 2^64 divided by the golden ratio, as in SplitMix64: being odd, it maps no two process ids to one seed.
    constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
    return chosen_ ? value_ : value_ + kStep * static_cast<uint64_t>(getpid());
  }

 private:
  uint64_t value_;
  bool chosen_;
};

}  // namespace quern::replay
