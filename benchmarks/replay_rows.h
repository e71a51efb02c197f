// The rows of the replay benchmarks, like those of a self-play actor, and arrays for a batch of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/buffer.h"

namespace quern::bench {

inline constexpr size_t kPlanes = 7808, kPolicy = 4672;  // floats; with the value, 49,924 bytes per row
inline constexpr size_t kReplayColumns = 3;
inline constexpr size_t kReplayBatch = 256;

inline replay::Schema replay_schema() {
  using replay::DType;
  return replay::Schema({{.name = "planes", .dtype = DType::kF32, .shape = {kPlanes}},
                         {.name = "policy", .dtype = DType::kF32, .shape = {kPolicy}},
                         {.name = "value", .dtype = DType::kF32}});
}

// A batch in the caller's memory: one array per column.
struct ReplayRows {
  ReplayRows() : planes(kReplayBatch * kPlanes), policy(kReplayBatch * kPolicy), value(kReplayBatch) {}

  // Row i has the value i, and numbers that are unique to row i.
  void fill() {
    for (size_t row = 0; row < kReplayBatch; ++row) {
      for (size_t i = 0; i < kPlanes; ++i) planes[row * kPlanes + i] = static_cast<float>(i + row * 11);
      for (size_t i = 0; i < kPolicy; ++i) policy[row * kPolicy + i] = static_cast<float>(i + row * 7);
    }
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i);
  }

  // Whether every row equals a complete row of `original`.
  bool all_of(const ReplayRows& original) const {
    for (size_t row = 0; row < kReplayBatch; ++row) {
      const float number = value[row];
      if (!(number >= 0 && number < static_cast<float>(kReplayBatch))) return false;
      const auto from = static_cast<size_t>(number);
      const bool same =
          std::equal(&planes[row * kPlanes], &planes[row * kPlanes] + kPlanes, &original.planes[from * kPlanes]) &&
          std::equal(&policy[row * kPolicy], &policy[row * kPolicy] + kPolicy, &original.policy[from * kPolicy]);
      if (!same) return false;
    }
    return true;
  }

  std::vector<std::byte*> arrays() {
    return {reinterpret_cast<std::byte*>(planes.data()), reinterpret_cast<std::byte*>(policy.data()),
            reinterpret_cast<std::byte*>(value.data())};
  }

  std::vector<float> planes, policy, value;
};

// Bytes per row of each column.
inline constexpr size_t kReplayRow[kReplayColumns] = {kPlanes * sizeof(float), kPolicy * sizeof(float), sizeof(float)};
inline constexpr size_t kReplayRowBytes = kReplayRow[0] + kReplayRow[1] + kReplayRow[2];
static_assert(kReplayRowBytes == 49924);

}  // namespace quern::bench
