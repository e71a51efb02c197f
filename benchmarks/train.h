// Benchmark of complete training steps of a preset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/harness.h"

namespace quern::bench {

// The presets with a bar: those that peers are compared on.
std::vector<std::string_view> train_presets();

struct TrainWorkload {
  std::string preset = "tiny";
  uint64_t steps = 0;                 // per timed round; 0: about one second
  size_t rounds = 5;                  // timed; the best is reported
  uint64_t batch = 0;                 // sequences per step; 0: the preset's
  uint64_t context = 0;               // their length; 0: the preset's
  std::vector<std::string> settings;  // of the config, as "model.layers=24"
  std::string precision, recompute;   // empty: fp32; nothing recomputed, since everything fits

  bool as_preset() const { return batch == 0 && context == 0 && settings.empty(); }
  bool saves_memory() const { return !precision.empty() || !recompute.empty(); }
};

// Figures of the best round. Fractions are of the workers' time.
struct TrainFigures {
  std::string preset;
  size_t threads = 0, teams = 0;
  double tokens_per_s = 0;
  double gflops = 0;               // useful work; recomputation does not count
  double fma_peak_gflops = 0;      // of all threads
  std::optional<double> mfu = {};  // relative to that; nullopt when the machine was too busy to measure it
  double utilisation = 0;
  double ticket_wait = 0, team_wait = 0, queue_wait = 0;
  std::optional<double> locks_per_step;  // and waits at barriers, in the entire process; nullopt with a sanitizer
  double sleeps_per_step = 0;            // number of times a thread of the process yielded its core to wait
  uint64_t peak_rss_bytes = 0;
  uint64_t planned_bytes = 0;     // the expected peak
  uint64_t activation_bytes = 0;  // of a worker, saved for backward
  uint64_t working_bytes = 0;     // of a worker, everything else except logits
};

// Trains the preset's model on random tokens of its vocabulary: the speed does not depend on the tokens. Interleaves
// rounds of `threads` workers, of one thread, and of the same kernels with a barrier of all threads after every
// operation; checks that the weights of all three are bit-identical. A workload that saves memory is instead compared
// with fp32 without recomputation.
TrainFigures bench_train(Context& context, const TrainWorkload& workload);

}  // namespace quern::bench
