// A buffer whose rows are known from their ids, and drawing from it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "replay/sampler.h"

namespace quern::replay::test {

inline Schema number_schema() { return Schema({{.name = "number", .dtype = DType::kU64}}); }

// Row `id` holds the number id, as long as one thread adds.
inline void add_numbers(ReplayBuffer& buffer, uint64_t rows, std::span<const float> priorities = {}) {
  for (uint64_t r = 0; r < rows; ++r) {
    const uint64_t number = buffer.ring().window().end;
    const std::byte* const column = reinterpret_cast<const std::byte*>(&number);
    buffer.add({&column, 1}, 1, priorities.empty() ? priorities : priorities.subspan(r, 1));
  }
}

inline ReplayBuffer numbered(uint64_t capacity, uint64_t rows) {
  ReplayBuffer buffer = ReplayBuffer::create(number_schema(), {.capacity = capacity, .prefault = false});
  add_numbers(buffer, rows);
  return buffer;
}

struct Rows {
  std::vector<uint64_t> numbers, ids, ages;
  std::vector<float> weights;
  bool operator==(const Rows&) const = default;
};

inline Rows draw(Sampler& sampler, const SampleRequest& request) {
  const size_t n = request.rows;
  Rows rows{std::vector<uint64_t>(n), std::vector<uint64_t>(n), std::vector<uint64_t>(n), std::vector<float>(n)};
  std::byte* const column = reinterpret_cast<std::byte*>(rows.numbers.data());
  sampler.sample(request, {{&column, 1}, rows.ids.data(), rows.ages.data(), rows.weights.data()});
  return rows;
}

// How far counts are from what their chances (of any sum) would make of them, in deviations of the chi-square
// distribution from its mean. 6 is an accident once in 10^6 or so; a chance that is off by a tenth gives tens.
inline double misfit(std::span<const uint64_t> counts, std::span<const double> chances) {
  double all = 0, sum = 0, square = 0, cells = 0;
  for (const uint64_t count : counts) all += static_cast<double>(count);
  for (const double chance : chances) sum += chance;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (chances[i] == 0) {
      if (counts[i] != 0) return std::numeric_limits<double>::infinity();
      continue;
    }
    const double expected = all * chances[i] / sum;
    square += (static_cast<double>(counts[i]) - expected) * (static_cast<double>(counts[i]) - expected) / expected;
    ++cells;
  }
  return (square - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

}  // namespace quern::replay::test
