// The loop that every kind of sampling shares: draw rows, use those that can be used, replace the others.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/draw.h"

namespace quern::replay {

// What is known about the drawn rows themselves; null for outputs that are not wanted.
struct DrawnArrays {
  uint64_t* ids = nullptr;
  uint64_t* ages = nullptr;  // rows reserved since: 0 for the newest
  float* weights = nullptr;  // importance weights; 1 for rules other than kPrioritised
};

inline constexpr size_t kDrawBlock = 64;  // rows drawn ahead, so that their bytes can be prefetched

// Turns probabilities into importance weights, in place: (size * probability)^-beta divided by the largest of them,
// which is that of the smallest probability, so that the size cancels out.
inline void weigh(std::span<float> chances, double beta) {
  const double min = *std::min_element(chances.begin(), chances.end());
  for (float& chance : chances) chance = static_cast<float>(std::pow(min / chance, beta));
}

// Calls use(i, drawn, following) for i = 0 ... request.rows - 1. It returns false if the row cannot be used: then
// another is drawn for the same i. `following` is the row that is likely to come next, for prefetching. Before that,
// calls prepare(block) for every block of rows that are drawn together; none of them is replaced yet.
template <typename Use, typename Prepare>
void draw_rows(Drawer& drawer, const SampleRequest& request, const DrawnArrays& out, Use use, Prepare prepare) {
  std::array<Drawn, kDrawBlock + 1> block;  // plus an end marker
  for (size_t first = 0; first < request.rows; first += kDrawBlock) {
    const size_t rows = std::min(kDrawBlock, request.rows - first);
    if (first > 0) drawer.look();
    for (size_t i = 0; i < rows; ++i) block[i] = drawer.next();
    block[rows] = {};
    prepare(std::span<const Drawn>(block.data(), rows));
    for (size_t i = 0; i < rows; ++i) {
      for (uint64_t tries = 1; !use(first + i, block[i], block[i + 1]); ++tries) block[i] = drawer.again(tries);
      if (out.ids != nullptr) out.ids[first + i] = block[i].id;
      if (out.ages != nullptr) out.ages[first + i] = block[i].age;
      if (out.weights != nullptr) out.weights[first + i] = block[i].chance;
    }
  }
  if (request.rule == Rule::kPrioritised && out.weights != nullptr) weigh({out.weights, request.rows}, request.beta);
}

template <typename Use>
void draw_rows(Drawer& drawer, const SampleRequest& request, const DrawnArrays& out, Use use) {
  draw_rows(drawer, request, out, use, [](std::span<const Drawn>) {});
}

// Calls draw(), then reports lost memory, also instead of an error about an empty buffer.
template <typename Draw>
void draw_intact(const ReplayBuffer& buffer, Draw draw) {
  try {
    draw();
  } catch (const Error&) {
    buffer.expect_intact();
    throw;
  }
  buffer.expect_intact();
}

}  // namespace quern::replay
