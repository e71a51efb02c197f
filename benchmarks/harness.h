// Shared by all benchmarks: interleaved timing, and results with their reference and bar.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/peers/peers.h"
#include "report/machine.h"

namespace quern::bench {

// A measurement and its reference. ratio = value / reference_value, oriented so that higher is better.
struct Result {
  std::string name;       // "gemm/nt/256x1152x384"
  double value = 0;       // Quern's
  std::string unit;       // "GFLOPS", "GB/s", "Mop/s"
  std::string reference;  // what it is compared with: "openblas", "traffic", "copy", "mutex"
  double reference_value = 0;
  double ratio = 0;
  std::optional<double> bar;  // ratio that must be reached; nullopt for informational results
  bool pass = true;
};

// The input of a workload, and the collector of its results.
class Context {
 public:
  // Results whose name does not contain `filter` are skipped; an empty filter accepts all.
  Context(report::Machine machine, const Peers* peers, size_t threads, bool quick, std::string filter = {});

  const report::Machine& machine() const { return machine_; }
  const Peers* peers() const { return peers_; }  // null when the peers module does not exist
  size_t threads() const { return threads_; }
  bool quick() const { return quick_; }  // smoke test: one short repeat, bars not checked

  // Whether add() would accept a result of this name: call it before timing something.
  bool wants(std::string_view name) const { return name.find(filter_) != std::string_view::npos; }

  // Adds a result, computes its ratio and pass, and passes it to the listener immediately (progress).
  void add(std::string name, double value, std::string unit, std::string reference, double reference_value,
           std::optional<double> bar = std::nullopt);
  // Reports that a workload computed a wrong answer: a failed result, whatever its speed.
  void wrong_answer(std::string name, const std::string& what);

  const std::vector<Result>& results() const { return results_; }
  const std::vector<std::string>& wrong_answers() const { return wrong_answers_; }
  std::function<void(const Result&)> on_result;

 private:
  report::Machine machine_;
  const Peers* peers_;
  size_t threads_;
  bool quick_;
  std::string filter_;
  std::vector<Result> results_;
  std::vector<std::string> wrong_answers_;
};

// The best time in seconds of one call of each function. All are called in turn, repeatedly, for about `seconds` in
// total and at least `min` rounds (quick: 1 round). With interleaving, a noisy neighbour affects all alike.
std::vector<double> best_times(const Context& context, const std::vector<std::function<void()>>& functions,
                               double seconds = 0.5, size_t min = 5);

}  // namespace quern::bench
