// How the workers' time divides among operations, measured in a step now and then.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "quern/profile.h"
#include "run/observer.h"

namespace quern::report {

struct OperationShare {
  std::string_view name;
  double share;  // of the time of all workers in the step
};

// Profiles one step of every `interval`: a profiled step takes about 1 % longer (docs/diagnostics.md), so one in 100
// costs 0.01 %. Must outlive the run.
class OperationTimes {
 public:
  static constexpr uint64_t kMinInterval = 50;
  // Which of them: late enough for the first one that threads and caches are warm.
  static constexpr uint64_t kPlace = 5;

  explicit OperationTimes(uint64_t interval) : interval_(interval < kMinInterval ? kMinInterval : interval) {}

  void start(const train::RunStart& start);
  // Call after every step. The shares of at least 0.1 %, by name, if it was measured.
  std::vector<OperationShare> after(const train::StepReport& report);
  void stop();

 private:
  uint64_t interval_;
  std::function<void(Profile*)> set_profile_;
  std::unique_ptr<Profile> profile_;  // one for the whole run: a wait that begins in a measured step ends in another
  std::vector<ProfileRow> before_;
  bool measuring_ = false;
};

}  // namespace quern::report
