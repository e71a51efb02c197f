// metrics.jsonl: a line of JSON per logged step and per validation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "train/observer.h"

namespace quern::report {

// {"step":10,"loss":3.2,"rate":0.001,"gradient_norm":1.4,"tokens_per_s":52000} every `interval` steps and at skipped
// updates ("skipped":true), and {"step":100,"validation_loss":2.9}. A resumed run drops the lines of steps that it does
// again, so that every step is there once. Error when the file cannot be written.
class Metrics : public train::Observer {
 public:
  Metrics(std::filesystem::path file, uint64_t interval);

  void on_start(const train::RunStart& start) override;
  void on_step(const train::StepReport& report) override;
  void on_validation(uint64_t step, double loss) override;

 private:
  void write_line(const std::string& line);

  std::filesystem::path path_;
  uint64_t interval_;
  std::ofstream file_;
};

}  // namespace quern::report
