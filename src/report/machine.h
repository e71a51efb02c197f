// The limits of this machine, measured: what a figure is compared with.
#pragma once

#include <cstddef>
#include <string>

namespace quern::report {

struct Machine {
  double fma_peak_gflops = 0;      // all threads
  double fma_peak_one_gflops = 0;  // one thread
  double read_gbs = 0;             // all threads, from memory
  double copy_gbs = 0;             // the same; bytes read and bytes written both count
  size_t threads = 1;
  std::string target, cpu;
  bool fma = true;  // false: the target multiplies and adds, and both count
};

// Measures the limits with `threads` threads and the target in use: about a second. `quick` takes a tenth of the time
// and of the memory, and its bandwidths may be those of a cache.
Machine measure_machine(size_t threads, bool quick = false);

// Its FMA peak alone, in some milliseconds and without memory.
double quick_fma_peak_gflops(size_t threads);

}  // namespace quern::report
