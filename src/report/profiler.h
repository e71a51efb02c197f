// Profiles a run and produces a table, a trace, or both.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "quern/profile.h"
#include "report/output.h"
#include "report/profile_table.h"
#include "run/observer.h"

namespace quern::report {

struct ProfilerOptions {
  bool table = true;
  std::filesystem::path trace = {};  // empty: no trace
};

// Does nothing if neither is requested.
class Profiler : public train::Observer {
 public:
  // Error if the trace could not be written. The profiler must outlive the run.
  explicit Profiler(ProfilerOptions options);

  void on_start(const train::RunStart& start) override;
  void on_step(const train::StepReport& report) override;
  void on_end(const train::RunEnd& end) override;

  // Call after the run, when its threads have ended. Prints and writes what was requested. The limits are those of the
  // machine with as many threads as the run used.
  void finish(double peak_gflops, double copy_gbs, Output& out);
  bool wanted() const { return options_.table || !options_.trace.empty(); }

 private:
  ProfilerOptions options_;
  std::unique_ptr<Profile> profile_;
  std::optional<ProfiledThread> here_;  // the training thread
  ProfileSummary summary_;
};

}  // namespace quern::report
