// Progress on the terminal: one line that is written over, or plain lines where the output is not a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "report/limiter.h"
#include "report/output.h"
#include "report/utilisation.h"
#include "train/config.h"
#include "train/observer.h"

namespace quern::report {

struct ConsoleOptions {
  std::FILE* out = stdout;
  bool terminal = false;
  uint64_t interval = 10;                     // steps between plain lines
  double peak_gflops = 0;                     // of the threads that train, for MFU; 0 when not measured
  std::function<double()> measure_peak = {};  // the same once more, for a machine that was busy the first time
  const train::RunConfig* config = nullptr;   // of the run, to tell about its plan; null: nothing is told
};

// What cannot be written is lost and nothing else (Output).
class Console : public train::Observer {
 public:
  explicit Console(const ConsoleOptions& options)
      : options_(options), out_(options.out), utilisation_(options.peak_gflops, options.measure_peak) {}

  void on_preparing(std::string_view what, uint64_t done, uint64_t total) override;
  void on_start(const train::RunStart& start) override;
  void on_step(const train::StepReport& report) override;
  void on_incident(const train::IncidentReport& report) override;
  void on_validation(uint64_t step, double loss) override;
  void on_end(const train::RunEnd& end) override;
  void on_warning(const std::string& text) override;

  // Ends the progress line, if there is one.
  void finish();

  Output& out() { return out_; }

 private:
  std::string line(const train::StepReport& report);
  std::string mfu_text(double tokens_per_s);

  ConsoleOptions options_;
  Output out_;
  train::RunStart start_;
  Limiter limiter_{0, 0};
  Utilisation utilisation_;
  std::optional<double> validation_loss_;
  double tokens_ = 0, seconds_ = 0;  // of the steps so far, older ones counting less
  double shown_ = -1;                // when the line was last written, in seconds of training
  double elapsed_ = 0;
  double prepared_ = 0;  // when on_preparing() last wrote
  std::string preparing_;
  bool open_line_ = false;
};

}  // namespace quern::report
