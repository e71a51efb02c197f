// Measures the limits of this machine, for comparison.
#pragma once

#include <cstddef>
#include <string>

namespace quern::report {

struct Machine {
  double fma_peak_gflops = 0;      // all threads
  double fma_peak_one_gflops = 0;  // one thread
  double read_gbs = 0;             // all threads, from memory
  double copy_gbs = 0;             // likewise; counts bytes read and bytes written
  size_t threads = 1;
  std::string target, cpu;
  bool fma = true;  // false: the target uses separate multiplies and adds, and both count
};

// Measures the limits with `threads` threads and the current target in about a second. `quick` uses a tenth of the time
// and of the memory, so its bandwidths may be those of a cache.
Machine measure_machine(size_t threads, bool quick = false);

// Measures only the FMA peak, in a few milliseconds and without allocating memory.
double quick_fma_peak_gflops(size_t threads);

}  // namespace quern::report
