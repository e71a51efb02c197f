#include <algorithm>
#include <barrier>
#include <cstring>
#include <limits>

#include "benchmarks/harness.h"
#include "benchmarks/limits.h"
#include "core/aligned_buffer.h"
#include "core/clock.h"
#include "core/cpu_info.h"
#include "kernels/target.h"

namespace quern::bench {
namespace {

// The best wall time of body(thread) on all threads at once. The barrier takes the time when the last thread arrives,
// so a round lasts from everybody's start to everybody's end, however many threads share a core.
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

// About 1 ms a round: long beside waking the threads (20 us), short enough that some rounds meet no other program.
double fma_peak_gflops(size_t threads, size_t rounds) {
  size_t count = 200;
  double operations = 0;
  double elapsed = 0;
  while (elapsed < 0.5e-3) {
    count *= 2;
    const double start = seconds_now();
    operations = multiply_adds(count);
    elapsed = seconds_now() - start;
  }
  const double best = best_round(threads, rounds, [count](size_t) { multiply_adds(count); });
  return operations * static_cast<double>(threads) / best * 1e-9;
}

// Twice the last cache: a walk round and round over more than it holds finds next to nothing of itself there. Not above
// 512 MiB, whose pages take 0.5 s to get from some virtual machines, nor above an eighth of the memory.
size_t floats_to_stream(const CpuInfo& cpu, bool quick) {
  const size_t most = std::max(size_t{32} << 20, std::min(size_t{512} << 20, cpu.memory_bytes / 8));
  const size_t wanted = std::max(2 * std::max(cpu.l3_bytes, cpu.l2_bytes), size_t{128} << 20);
  return std::min({wanted, most, quick ? size_t{32} << 20 : most}) / sizeof(float);
}

struct Bandwidth {
  double read_gbs, copy_gbs;
};

// Reads go over the whole array, copies from one half to the other; each thread has its own slice and touched it first.
Bandwidth measure_bandwidth(const CpuInfo& cpu, size_t threads, bool quick) {
  const size_t half = floats_to_stream(cpu, quick) / 2 / threads / 64 * 64;  // of a slice
  AlignedBuffer<float> array(2 * half * threads);  // on huge pages: address translation is not what is measured
  const auto slice = [&](size_t thread) { return array.data() + 2 * half * thread; };
  run_on_threads(threads, [&](size_t thread) { std::memset(slice(thread), 0, 2 * half * sizeof(float)); });

  const size_t rounds = quick ? 2 : 6;
  const double read = best_round(threads, rounds, [&](size_t thread) { keep(read_floats(slice(thread), 2 * half)); });
  const double copy =
      best_round(threads, rounds, [&](size_t thread) { stream_copy(slice(thread), slice(thread) + half, half); });
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

}  // namespace quern::bench
