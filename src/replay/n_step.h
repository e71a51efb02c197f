// Draws rows with the discounted return of the next n steps of their episode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/buffer.h"
#include "replay/draw.h"

namespace quern::replay {

// A row t is drawn with the sum over its next k <= n rows, and with what follows, for the target
//
// clang-format off
//   return   = reward[t] + gamma * reward[t + 1] + ... + gamma^(k - 1) * reward[t + k - 1]
//   target   = return + discount * value(what follows)
//
//   the episode                        k           discount     what follows: `next` columns    `last` columns
//   has n more rows                    n           gamma^n      of row t + n                    of row t + n - 1
//   ends in a terminal state at e      e - t + 1   0            of row e (of no importance)     of row e
//   is cut off (truncated) at e
//     no `next` columns wanted         e - t + 1   gamma^k                                      of row e
//     `next` columns wanted            e - t       gamma^k      of row e                        of row e - 1
// clang-format on
//
// `next` is for rows that hold an observation: what follows is the observation of a later row. Nothing is stored after
// a row that was cut off, so its own observation is the last one to bootstrap from, and that row itself is not drawn.
// `last` is for rows that also hold the observation after their step (next_observation): there is one at every end.
//
// Rows whose episode neither has n more rows yet nor ended are not drawn: it is still going on, its writer was killed,
// or a row is not there.
struct NStepRequest {
  SampleRequest starts = {};  // `rows` is the number of rows to draw
  size_t n = 0;
  double gamma = 0;
  size_t reward = 0;  // column: one number per row, not float16
};

// One entry per drawn row; null for outputs that are not wanted, and for columns in the first three.
struct NStepArrays {
  std::span<std::byte* const> columns;  // of row t; as many as the schema has
  std::span<std::byte* const> next;     // as many as the schema has, or empty
  std::span<std::byte* const> last;     // as many as the schema has, or empty
  float* returns = nullptr;
  float* discounts = nullptr;
  uint64_t* steps = nullptr;  // k
  uint64_t* ids = nullptr;
  uint64_t* next_ids = nullptr;  // of the row that `next` is of; of the last row without `next` columns
  uint64_t* ages = nullptr;
  float* weights = nullptr;
};

// Error: no episodes in this buffer, an invalid request. Waits until the rate limit admits as many rows as are drawn;
// TimedOut after `wait`.
void admit_n_step(const ReplayBuffer& buffer, const NStepRequest& request, const NStepArrays& out,
                  const Wait& wait = {});

// Draws them, after admit_n_step(). All rows that a result is computed from are complete rows of one episode in their
// order (see sample_sequences()). Sums are in double precision, rounded once. Error when no row can be drawn.
void sample_n_step(const ReplayBuffer& buffer, const NStepRequest& request, const NStepArrays& out, uint64_t seed,
                   uint64_t call);

}  // namespace quern::replay
