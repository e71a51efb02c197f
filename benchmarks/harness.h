// What benchmarks share: interleaved timing, results with their reference and bar, the machine's own limits.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/peers/peers.h"

namespace quern::bench {

// One figure beside what it is compared with. ratio = value / reference_value, oriented so that higher is better.
struct Result {
  std::string name;       // "gemm/nt/256x1152x384"
  double value = 0;       // ours
  std::string unit;       // "GFLOPS", "GB/s", "Mop/s"
  std::string reference;  // what it is compared with: "openblas", "traffic", "copy", "mutex"
  double reference_value = 0;
  double ratio = 0;
  std::optional<double> bar;  // ratio that must be reached; none for what is shown only
  bool pass = true;
};

// The limits of this machine, taken in this process just before the workloads.
struct Machine {
  double fma_peak_gflops = 0;      // all threads
  double fma_peak_one_gflops = 0;  // one thread
  double read_gbs = 0;             // all threads, from memory
  double copy_gbs = 0;             // the same; bytes read and bytes written both count
  size_t threads = 1;
  std::string target, cpu;
  bool fma = true;  // false: the target multiplies and adds, and both count
};

// What a workload is given, and where it leaves its results.
class Context {
 public:
  // Results whose name does not contain `filter` are left out; an empty filter keeps all.
  Context(Machine machine, const Peers* peers, size_t threads, bool quick, std::string filter = {});

  const Machine& machine() const { return machine_; }
  const Peers* peers() const { return peers_; }  // null when the peers module is not there
  size_t threads() const { return threads_; }
  bool quick() const { return quick_; }  // smoke test: one short repeat, bars not judged

  // Whether add() would keep a result of this name: ask before timing something for it.
  bool wants(std::string_view name) const { return name.find(filter_) != std::string_view::npos; }

  // Adds a result, its ratio and pass computed here, and hands it to the listener at once (progress).
  void add(std::string name, double value, std::string unit, std::string reference, double reference_value,
           std::optional<double> bar = std::nullopt);
  // Says that a workload computed a wrong answer: a failed result, whatever its speed.
  void wrong_answer(std::string name, const std::string& what);

  const std::vector<Result>& results() const { return results_; }
  const std::vector<std::string>& wrong_answers() const { return wrong_answers_; }
  std::function<void(const Result&)> on_result;

 private:
  Machine machine_;
  const Peers* peers_;
  size_t threads_;
  bool quick_;
  std::string filter_;
  std::vector<Result> results_;
  std::vector<std::string> wrong_answers_;
};

// The best time in seconds of one call of each function, all called in turn, over and over, for about `seconds` in all
// and at least `least` rounds (quick: 1 round). Interleaving lets a noisy neighbour disturb all alike.
std::vector<double> best_times(const Context& context, const std::vector<std::function<void()>>& functions,
                               double seconds = 0.5, size_t least = 5);

// Runs body(thread) on `threads` threads at once and returns when all have finished.
void run_on_threads(size_t threads, const std::function<void(size_t)>& body);

// Keeps the compiler from dropping what computed `value`.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// Measures the limits with `threads` threads and the target in use: about a second. `quick` takes a tenth of the time
// and of the memory, and its bandwidths may be those of a cache.
Machine measure_machine(size_t threads, bool quick = false);

// Its FMA peak alone, in some milliseconds and without memory.
double quick_fma_peak_gflops(size_t threads);

}  // namespace quern::bench
