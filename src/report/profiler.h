// Watches where a run's time goes: a table at the end, and a trace.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "quern/profile.h"
#include "report/output.h"
#include "report/profile_table.h"
#include "train/observer.h"

namespace quern::report {

struct ProfilerOptions {
  bool table = true;
  std::filesystem::path trace = {};  // empty: none
};

// Does nothing where neither is asked for.
class Profiler : public train::Observer {
 public:
  // Error when there could be no such trace. Must outlive the run.
  explicit Profiler(ProfilerOptions options);

  void on_start(const train::RunStart& start) override;
  void on_step(const train::StepReport& report) override;
  void on_end(const train::RunEnd& end) override;

  // After the run, when its threads have ended: prints and writes what was asked for, beside the limits of the machine
  // for as many threads as were at work.
  void finish(double peak_gflops, double copy_gbs, Output& out);
  bool wanted() const { return options_.table || !options_.trace.empty(); }

 private:
  ProfilerOptions options_;
  std::unique_ptr<Profile> profile_;
  std::optional<ProfiledThread> here_;  // the thread that trains
  ProfileSummary summary_;
};

}  // namespace quern::report
