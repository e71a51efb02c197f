// quern bench train: whole steps, beside the machine's peak, one thread, and threads that meet after every operation.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "benchmarks/train.h"

namespace quern::cli {

struct TrainBenchOptions {
  bench::TrainWorkload workload;
  size_t threads = 1;
  bool json = false;
  bool quick = false;
};

CLI::App* add_train_bench(CLI::App& bench, TrainBenchOptions& options);

int run_train_bench(const TrainBenchOptions& options);

}  // namespace quern::cli
