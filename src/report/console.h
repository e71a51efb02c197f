// Progress output: one line that is overwritten on a terminal, plain lines otherwise.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "report/limiter.h"
#include "report/output.h"
#include "report/utilisation.h"
#include "run/observer.h"

namespace quern::report {

struct ConsoleOptions {
  std::FILE* out = stdout;
  bool terminal = false;
  uint64_t interval = 10;                     // steps between plain lines
  double peak_gflops = 0;                     // of the training threads, for MFU; 0 if not measured
  std::function<double()> measure_peak = {};  // measures it again, in case the machine was busy the first time
  const train::RunConfig* config = nullptr;   // for printing the plan; null: do not print it
};

// A failed write loses that output and has no other effect (Output).
class Console : public train::Observer {
 public:
  explicit Console(const ConsoleOptions& options)
      : options_(options), out_(options.out), utilisation_(options.peak_gflops, options.measure_peak) {}

  void on_preparing(std::string_view what, uint64_t done, uint64_t total) override;
  void on_start(const train::RunStart& start) override;
  void on_settings(const train::SettingsReport& settings) override;
  void on_step(const train::StepReport& report) override;
  void on_incident(const train::IncidentReport& report) override;
  void on_validation(uint64_t step, double loss) override;
  void on_selfplay(const train::SelfplayReport& report) override;
  void on_rating(const train::RatingReport& report) override;
  void on_end(const train::RunEnd& end) override;
  void on_warning(const std::string& text) override;
  void on_note(const std::string& text) override;

  // Ends the progress line, if one is open.
  void finish();

  Output& out() { return out_; }
  double peak_gflops() const { return utilisation_.peak_gflops(); }  // the highest measured so far; 0: none

 private:
  void print_size(const train::RunStart& start);
  std::string line(const train::StepReport& report);
  std::string line(const train::SelfplayReport& report) const;
  std::string mfu_text(double tokens_per_s);

  ConsoleOptions options_;
  Output out_;
  train::RunStart start_;
  Limiter limiter_{0, 0};
  Utilisation utilisation_;
  std::optional<double> validation_loss_;
  double loss_ = 0;                  // of the last step
  std::optional<double> elo_;        // of the last rating
  double tokens_ = 0, seconds_ = 0;  // exponentially decaying sums over steps
  double shown_ = -1;                // time of the last write of the line, in seconds of training
  double elapsed_ = 0;
  double prepared_ = 0;  // time of the last write of on_preparing()
  std::string preparing_;
  bool open_line_ = false;
};

}  // namespace quern::report
