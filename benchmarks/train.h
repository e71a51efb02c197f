// Whole training steps of a preset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness.h"

namespace quern::bench {

struct TrainWorkload {
  std::string preset = "tiny";
  uint64_t steps = 0;                 // of a timed round; 0: about a second's
  size_t rounds = 5;                  // timed, of which the best counts
  uint64_t batch = 0;                 // sequences of a step; 0: the preset's
  uint64_t context = 0;               // their length; 0: the preset's
  std::vector<std::string> settings;  // of the config, as "model.layers=24"
  std::string precision, recompute;   // empty: fp32, and as much as fits, which is all

  bool as_preset() const { return batch == 0 && context == 0 && settings.empty(); }
  bool saves_memory() const { return !precision.empty() || !recompute.empty(); }
};

// Of the best round. Shares are of the workers' time.
struct TrainFigures {
  std::string preset;
  size_t threads = 0, teams = 0;
  double tokens_per_s = 0;
  double gflops = 0;               // useful work; recomputing does not count
  double fma_peak_gflops = 0;      // of all threads
  std::optional<double> mfu = {};  // of that; none when the machine was too busy to measure it
  double utilisation = 0;
  double ticket_wait = 0, team_wait = 0, queue_wait = 0;
  std::optional<double> locks_per_step;  // and waits at barriers, in the whole process; none with a sanitizer
  double sleeps_per_step = 0;            // times any thread of the process gave up its core to wait
  uint64_t peak_rss_bytes = 0;
  uint64_t planned_bytes = 0;     // what it was expected to be
  uint64_t activation_bytes = 0;  // of a worker, kept for backward
  uint64_t working_bytes = 0;     // of a worker, all else but logits
};

// Trains the preset's model on random tokens of its vocabulary: the speed does not depend on what the tokens are.
// Interleaves rounds of `threads` workers, of one thread, and of the same kernels with all threads meeting after every
// operation; checks that all three end with the same bits. A workload that saves memory is compared with fp32 and
// nothing recomputed instead.
TrainFigures bench_train(Context& context, const TrainWorkload& workload);

}  // namespace quern::bench
