#include "benchmarks/harness.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/clock.h"

namespace quern::bench {
Context::Context(report::Machine machine, const Peers* peers, size_t threads, bool quick, std::string filter)
    : machine_(std::move(machine)), peers_(peers), threads_(threads), quick_(quick), filter_(std::move(filter)) {}

void Context::add(std::string name, double value, std::string unit, std::string reference, double reference_value,
                  std::optional<double> bar) {
  if (!wants(name)) return;
  const double ratio = reference_value > 0 ? value / reference_value : 0.0;
  const bool pass = quick_ || !bar || ratio >= *bar;
  results_.push_back(
      {std::move(name), value, std::move(unit), std::move(reference), reference_value, ratio, bar, pass});
  if (on_result) on_result(results_.back());
}

void Context::wrong_answer(std::string name, const std::string& what) {
  wrong_answers_.push_back(name + ": " + what);
  results_.push_back({std::move(name), 0, "", "wrong answer: " + what, 0, 0, std::nullopt, false});
  if (on_result) on_result(results_.back());
}

std::vector<double> best_times(const Context& context, const std::vector<std::function<void()>>& functions,
                               double seconds, size_t min) {
  if (context.quick()) {
    seconds = 0;
    min = 1;
  }
  std::vector<double> best(functions.size(), std::numeric_limits<double>::infinity());
  for (const auto& function : functions) function();  // warm-up: pages, caches, frequency
  const double end = seconds_now() + seconds;
  for (size_t round = 0; round < min || seconds_now() < end; ++round) {
    for (size_t i = 0; i < functions.size(); ++i) {
      const double start = seconds_now();
      functions[i]();
      best[i] = std::min(best[i], seconds_now() - start);
    }
  }
  return best;
}

}  // namespace quern::bench
