#include "report/machine.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <ctime>
#include <limits>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/clock.h"
#include "core/cpu_info.h"
#include "core/measuring.h"
#include "kernels/limits.h"
#include "kernels/target.h"

namespace quern::report {
namespace {

// The best wall time of body(thread) on all threads at once. The barrier takes the time when the last thread arrives,
// so a round lasts from the common start until all threads are done, however many threads share a core.
double best_round(size_t threads, size_t rounds, const std::function<void(size_t)>& body) {
  double best = std::numeric_limits<double>::infinity();
  double last = 0;
  std::barrier together(static_cast<ptrdiff_t>(threads), [&]() noexcept {
    const double time = seconds_now();
    if (last > 0) best = std::min(best, time - last);
    last = time;
  });
  run_on_threads(threads, [&](size_t thread) {
    for (size_t round = 0; round < rounds; ++round) {
      together.arrive_and_wait();
      body(thread);
    }
    together.arrive_and_wait();
  });
  return best;
}

// CPU time of the calling thread.
double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Piece {
  double operations, seconds;
};

Piece timed_piece(size_t count) {
  const double start = thread_seconds();
  const double operations = kernels::multiply_adds(count);
  return {operations, std::max(thread_seconds() - start, 1e-9)};
}

// The 90th percentile: at the start, a few pieces may have had a core shared by two threads to themselves, and many
// pieces may have been disturbed.
double ninth_tenth(std::vector<double> rates) {
  const auto ninth = rates.begin() + static_cast<ptrdiff_t>(rates.size() * 9 / 10);
  std::nth_element(rates.begin(), ninth, rates.end());
  return *ninth;
}

// Based on CPU time: other programs take cores away, and with two or three of them running, there is hardly a
// millisecond in which all threads run at once, so wall time would show half of the peak. A thread that is done keeps
// working until all are, so that none has a shared core to itself. Threads beyond the number of cores add nothing.
double fma_peak_gflops(size_t threads, size_t pieces) {
  size_t count = 200;
  while (timed_piece(count).seconds < 0.25e-3) count *= 2;  // long compared with the 0.3 us that the clock takes

  std::vector<std::vector<double>> rates(threads, std::vector<double>(pieces));
  std::barrier together(static_cast<ptrdiff_t>(threads));
  std::atomic<size_t> working{threads};
  run_on_threads(threads, [&](size_t thread) {
    together.arrive_and_wait();
    for (double& rate : rates[thread]) {
      const Piece piece = timed_piece(count);
      rate = piece.operations / piece.seconds;
    }
    // Relaxed: only a hint when to stop. The join in run_on_threads() publishes the measurements.
    working.fetch_sub(1, std::memory_order_relaxed);
    while (working.load(std::memory_order_relaxed) > 0) kernels::multiply_adds(count);
  });
  double sum = 0;
  for (const std::vector<double>& own : rates) sum += ninth_tenth(own);
  const size_t cores = std::clamp<size_t>(cpu_info().usable_cores, 1, threads);
  return sum * static_cast<double>(cores) / static_cast<double>(threads) * 1e-9;
}

// Twice the size of the last-level cache: cyclic passes over more than it holds hit almost nothing in it. Limited to
// 512 MiB, whose pages take 0.5 s to allocate on some virtual machines, and to an eighth of the memory.
size_t floats_to_stream(const CpuInfo& cpu, bool quick) {
  const size_t max = std::max(size_t{32} << 20, std::min(size_t{512} << 20, cpu.memory_bytes / 8));
  const size_t wanted = std::max(2 * std::max(cpu.l3_bytes, cpu.l2_bytes), size_t{128} << 20);
  return std::min({wanted, max, quick ? size_t{32} << 20 : max}) / sizeof(float);
}

struct Bandwidth {
  double read_gbs, copy_gbs;
};

// Reads cover the whole array, copies go from one half to the other. Each thread has its own slice, which it touched
// first.
Bandwidth measure_bandwidth(const CpuInfo& cpu, size_t threads, bool quick) {
  const size_t half = floats_to_stream(cpu, quick) / 2 / threads / 64 * 64;  // of a slice
  AlignedBuffer<float> array(2 * half * threads);  // on huge pages, to exclude the cost of address translation
  const auto slice = [&](size_t thread) { return array.data() + 2 * half * thread; };
  run_on_threads(threads, [&](size_t thread) { std::memset(slice(thread), 0, 2 * half * sizeof(float)); });

  const size_t rounds = quick ? 2 : 6;
  const double read = best_round(
      threads, rounds, [&](size_t thread) { do_not_optimize(kernels::read_floats(slice(thread), 2 * half)); });
  const double copy = best_round(
      threads, rounds, [&](size_t thread) { kernels::stream_copy(slice(thread), slice(thread) + half, half); });
  const double bytes = static_cast<double>(2 * half * threads * sizeof(float));
  return {bytes / read * 1e-9, bytes / copy * 1e-9};
}

}  // namespace

double quick_fma_peak_gflops(size_t threads) { return fma_peak_gflops(threads, 60); }

Machine measure_machine(size_t threads, bool quick) {
  const CpuInfo cpu = cpu_info();
  const kernels::Target target = kernels::current_target();
  const size_t rounds = quick ? 10 : 150;
  Machine machine;
  machine.cpu = cpu.model;
  machine.threads = threads;
  machine.target = target.name;
  machine.fma = target.fma;
  machine.fma_peak_one_gflops = fma_peak_gflops(1, rounds);
  machine.fma_peak_gflops = threads == 1 ? machine.fma_peak_one_gflops : fma_peak_gflops(threads, rounds);
  const Bandwidth bandwidth = measure_bandwidth(cpu, threads, quick);
  machine.read_gbs = bandwidth.read_gbs;
  machine.copy_gbs = bandwidth.copy_gbs;
  return machine;
}

}  // namespace quern::report
