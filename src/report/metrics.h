// metrics.jsonl: a line of JSON per logged step, validation and warning. docs/formats.md documents the fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/limiter.h"
#include "report/operation_times.h"
#include "run/observer.h"

namespace quern::report {

struct MetricsOptions {
  uint64_t interval = 10;                    // steps between lines
  bool process = false;                      // also the lines about the process
  bool operations = false;                   // also the time by operation; only if nobody else profiles the run
  std::function<double()> peak_gflops = {};  // of the machine, as known by now, for MFU; 0 if unknown
  // Of the line about the start, if known:
  std::string command = {}, version = {}, commit = {}, data = {};
};

// {"step":10,"loss":3.2,...} every `interval` steps, at skipped updates ("skipped":true) and at the last step;
// {"step":100,"validation_loss":2.9}; {"step":100,"health":{"wte.weight":{...}}}; {"step":100,"warning":"..."};
// {"step":100,"incident":{...}}; of self-play {"step":100,"selfplay":{...}} after a generation, and
// {"step":100,"rating":{...}}. With MetricsOptions::process, also what docs/formats.md lists: starts, ends,
// checkpoints, changes of settings, samples, times by operation and what limits the speed. A resumed run drops the
// lines of steps and incidents that it will repeat, so that each appears once. Any other line is damaged, or the file
// belongs to something else. A run that starts at step 1 cannot tell whether the directory is its own and rejects the
// file with an Error; a later one drops the line with a warning. Error if the file cannot be written.
class Metrics : public train::Observer {
 public:
  Metrics(std::filesystem::path file, MetricsOptions options);
  Metrics(std::filesystem::path file, uint64_t interval) : Metrics(std::move(file), {.interval = interval}) {}

  void on_start(const train::RunStart& start) override;
  // Changes the interval. Writes the last step with the previous settings, as a process that ends does.
  void on_settings(const train::SettingsReport& settings) override;
  void on_step(const train::StepReport& report) override;
  void on_health(const train::HealthReport& report) override;
  void on_incident(const train::IncidentReport& report) override;
  void on_validation(uint64_t step, double loss) override;
  void on_selfplay(const train::SelfplayReport& report) override;
  void on_rating(const train::RatingReport& report) override;
  void on_sample(const train::SampleReport& report) override;
  void on_checkpoint(uint64_t step, const std::filesystem::path& path) override;
  void on_end(const train::RunEnd& end) override;
  void on_warning(const std::string& text) override;

 private:
  // Opens the file without the lines of steps from `first` on and of incidents after the first `incidents`, which will
  // be repeated. Returns the time of the remaining steps.
  double open_before(uint64_t first, uint64_t incidents);
  void write_start(const train::RunStart& start);
  void write_step(const train::StepReport& report);
  void write_operations(const train::StepReport& report);
  void write_limit(uint64_t step);
  void write_warning(const std::string& text);
  void write_line(const std::string& line);

  std::filesystem::path path_;
  MetricsOptions options_;
  std::ofstream file_;
  std::vector<std::string> loss_parts_;  // two or more, or none
  double flops_per_token_ = 0;
  Limiter limiter_{0, 0};
  std::string limit_;         // as it was written last
  uint64_t since_limit_ = 0;  // logged steps
  OperationTimes operations_;
  uint64_t step_ = 0;                          // the last completed one
  uint64_t last_step_ = 0;                     // of the run
  double elapsed_ = 0;                         // seconds of all steps so far
  std::optional<train::StepReport> unlogged_;  // the last step, if it has no line
  std::vector<std::string> early_;             // warnings from before the file was opened
};

}  // namespace quern::report
