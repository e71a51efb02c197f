// TensorBoard event files: the curves of a run and histograms of its weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "report/protobuf.h"
#include "run/observer.h"

namespace quern::report {

// Writes to `folder` every `interval` steps, at skipped updates, at the last step of the run, and at the last step of a
// process that ends earlier: loss/train, loss/validation, optimizer/rate, optimizer/gradient_norm, speed/tokens_per_s
// and memory/* in MiB. Also writes gradient_norm/* and update_ratio/* from on_health(), and histograms from
// on_weights(). Each process creates its own file with its first record; the name sorts after those of earlier
// processes. The file first tells TensorBoard to discard what an interrupted process wrote about steps that will be
// repeated, and does so again at a rollback. Each record is written in a single write: a killed process leaves at most
// one truncated record at the end, which TensorBoard ignores. Error if a file cannot be written.
class TensorBoard : public train::Observer {
 public:
  // Writes nothing while not enabled.
  TensorBoard(std::filesystem::path folder, uint64_t interval, bool enabled = true);

  void on_start(const train::RunStart& start) override;
  // Changes the interval, and whether anything is written at all. Writes the last step with the previous settings.
  void on_settings(const train::SettingsReport& settings) override;
  void on_step(const train::StepReport& report) override;
  void on_health(const train::HealthReport& report) override;
  void on_incident(const train::IncidentReport& report) override;
  void on_validation(uint64_t step, double loss) override;
  void on_weights(uint64_t step, std::span<const train::NamedValues> weights) override;
  void on_end(const train::RunEnd& end) override;

 private:
  void open();
  void write_start(uint64_t first_step);
  void write_step(const train::StepReport& report);
  void write_summary(uint64_t step, const ProtoMessage& summary);
  void write_record(const ProtoMessage& event);

  std::filesystem::path folder_, path_;
  uint64_t interval_;
  bool enabled_;
  uint64_t first_step_ = 1, last_step_ = 0;
  std::ofstream file_;
  std::optional<train::StepReport> unlogged_;  // the last step, if it has no record
};

}  // namespace quern::report
