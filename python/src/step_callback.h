// A run that tells a Python function about each step, and that Python can stop.
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <string>

#include "module.h"
#include "train/observer.h"

namespace quern::python {

// What on_step is given.
struct Step {
  train::StepReport report;
  uint64_t steps = 0;  // of the whole run
  std::optional<double> validation_loss;

  double tokens_per_s() const { return static_cast<double>(report.tokens) / report.seconds; }
  bool skipped() const { return !report.finite || report.trouble != train::Trouble::kNone; }
};

// To be called without Python's lock. A function that returns False or raises, and a signal such as Ctrl-C, end the run
// after the step, with a checkpoint.
class StepCallback : public train::Observer {
 public:
  // `function` may be None.
  explicit StepCallback(py::object function) : function_(std::move(function)) {}

  const std::atomic<bool>& stop() const { return stop_; }
  // Raises what the function or a signal raised. With Python's lock.
  void raise_again() const;

  void on_preparing(std::string_view what, uint64_t done, uint64_t total) override;
  void on_start(const train::RunStart& start) override { step_.steps = start.steps; }
  void on_step(const train::StepReport& report) override;
  void on_validation(uint64_t step, double loss) override;
  void on_step_end(uint64_t step) override;
  void on_warning(const std::string& text) override;

 private:
  template <typename Call>
  void call_python(const Call& call);

  py::object function_;
  Step step_;
  std::exception_ptr raised_;
  std::atomic<bool> stop_{false};
};

}  // namespace quern::python
