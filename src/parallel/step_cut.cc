#include "parallel/step_cut.h"

#include <algorithm>
#include <cmath>

#include "nn/micro_batch.h"
#include "parallel/workers.h"

namespace quern::train {
namespace {

// The overhead of a micro-batch, in tokens. It passes over the whole gradient once, 8 bytes per parameter at about
// 10 GB/s; in that time a core does the 6 operations per parameter and token for about 25 tokens. Products with fewer
// rows are also slower.
constexpr double kOverheadTokens = 32;

// Threads of a team synchronize after each operation, so n threads have a speedup of n to this power: 1.8 for two
// (measured on preset small: 1.77).
constexpr double kTeamExponent = 0.85;

size_t parts_of(size_t n, size_t part) { return (n + part - 1) / part; }

}  // namespace

// Time until the last thread is done.
double expected_time(const StepCut& cut, size_t T, size_t threads) {
  const size_t members = threads / cut.teams;  // of the smallest team
  const double speed = std::pow(static_cast<double>(members), kTeamExponent);
  const double tokens = static_cast<double>(cut.micro_batch_size * T) + kOverheadTokens;
  return static_cast<double>(parts_of(cut.micro_batches, cut.teams)) * tokens / speed;
}

StepCut cut_step(size_t sequences, size_t T, size_t threads) {
  const auto cut_by = [&](size_t micro_batch_size) {
    const size_t count = parts_of(sequences, micro_batch_size);
    return StepCut{.micro_batch_size = micro_batch_size, .micro_batches = count, .teams = teams_for(threads, count)};
  };
  StepCut best = cut_by(std::min(nn::sequences_per_micro_batch(T), sequences));
  for (size_t micro_batch_size = best.micro_batch_size; --micro_batch_size > 0;) {
    const StepCut cut = cut_by(micro_batch_size);
    if (expected_time(cut, T, threads) < 0.99 * expected_time(best, T, threads))
      best = cut;  // for gains below 1 %, prefer larger micro-batches
  }
  return best;
}

}  // namespace quern::train
