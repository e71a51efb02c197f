// quern bench train: complete steps against the machine's peak, one thread, and a barrier after every operation.
#pragma once

#include "benchmarks/train.h"
#include "cli/parser.h"

namespace quern::bench {

struct TrainBenchOptions {
  TrainWorkload workload;
  size_t threads = 1;
  bool json = false;
  bool quick = false;
};

cli::Parser add_train_bench(cli::Parser root, TrainBenchOptions& options);

int run_train_bench(const TrainBenchOptions& options);

}  // namespace quern::bench
