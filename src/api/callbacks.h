// The callbacks of a caller as an observer of a run.
#pragma once

#include <quern/train.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "run/observer.h"
#include "run/run.h"

namespace quern::api {

// Calls the callbacks of the options. An exception from a callback must not propagate through the run while the run can
// still be saved: it stops the run, and rethrow() throws it afterwards.
class Callbacks : public train::Observer {
 public:
  explicit Callbacks(const TrainOptions& options) : options_(options) {}

  const std::atomic<bool>& stop() const { return stop_; }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  void on_preparing(std::string_view what, uint64_t done, uint64_t total) override {
    if (options_.on_preparing) options_.on_preparing(what, done, total);  // nothing to save yet: may throw
  }
  void on_start(const train::RunStart& start) override { step_.steps = start.steps; }
  void on_step(const train::StepReport& report) override;
  void on_validation(uint64_t, double loss) override { step_.validation_loss = loss; }
  void on_step_end(uint64_t) override {
    call([&] {
      if (options_.on_step && !options_.on_step(step_)) ask_to_stop();
    });
  }
  void on_warning(const std::string& text) override {
    call([&] {
      if (options_.on_warning) options_.on_warning(text);
    });
  }

 protected:
  template <typename Function>
  void call(const Function& function) {
    try {
      function();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      ask_to_stop();
    }
  }
  void ask_to_stop() { stop_.store(true, std::memory_order_relaxed); }  // by the training thread

 private:
  const TrainOptions& options_;
  Step step_;
  std::exception_ptr thrown_;
  std::atomic<bool> stop_{false};
};

// What a call returns for a run in `folder`, which the caller named `out`.
TrainResult result_of(const train::RunResult& run, const std::filesystem::path& out,
                      const std::filesystem::path& folder, train::Observer& observer);

}  // namespace quern::api
