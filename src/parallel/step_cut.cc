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

size_t micro_batches_of(const StepCut& cut) {
  size_t count = 0;
  const Range own = cut.share.own();
  for (size_t lane = own.begin; lane < own.end; ++lane) count += parts_of(cut.lane(lane).size(), cut.micro_batch_size);
  return count;
}

}  // namespace

StepCut StepCut::whole() const {
  StepCut cut = *this;
  cut.share = {.lanes = share.lanes};
  cut.micro_batches = micro_batches_of(cut);
  return cut;
}

std::vector<StepPart> StepCut::parts() const {
  std::vector<StepPart> all;
  all.reserve(micro_batches);
  for (size_t index = share.own().begin; index < share.own().end; ++index) {
    const Range whole = lane(index);
    for (size_t first = whole.begin; first < whole.end; first += micro_batch_size) {
      const size_t end = std::min(first + micro_batch_size, whole.end);
      all.push_back({{first, end}, index, first == whole.begin, end == whole.end});
    }
  }
  return all;
}

size_t StepCut::part_of(size_t sequence) const {
  size_t before = 0, index = share.own().begin;
  for (; lane(index).end <= sequence; ++index) before += parts_of(lane(index).size(), micro_batch_size);
  return before + (sequence - lane(index).begin) / micro_batch_size;
}

// Time until the last thread is done.
double expected_time(const StepCut& cut, size_t T, size_t threads) {
  const size_t members = threads / cut.teams;  // of the smallest team
  const double speed = std::pow(static_cast<double>(members), kTeamExponent);
  const double tokens = static_cast<double>(cut.micro_batch_size * T) + kOverheadTokens;
  return static_cast<double>(parts_of(cut.micro_batches, cut.teams)) * tokens / speed;
}

StepCut cut_step(size_t sequences, size_t T, size_t threads, const LaneShare& share) {
  const auto cut_by = [&](size_t micro_batch_size) {
    StepCut cut{.sequences = sequences, .share = share, .micro_batch_size = micro_batch_size};
    cut.micro_batches = micro_batches_of(cut);
    cut.teams = teams_for(threads, cut.micro_batches);
    return cut;
  };
  const size_t longest_lane = parts_of(sequences, share.lanes);
  StepCut best = cut_by(std::min(nn::sequences_per_micro_batch(T), longest_lane));
  for (size_t micro_batch_size = best.micro_batch_size; --micro_batch_size > 0;) {
    const StepCut cut = cut_by(micro_batch_size);
    if (expected_time(cut, T, threads) < 0.99 * expected_time(best, T, threads))
      best = cut;  // for gains below 1 %, prefer larger micro-batches
  }
  return best;
}

}  // namespace quern::train
