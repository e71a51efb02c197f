// A profile as a table: time per operation, and speed relative to the machine's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "quern/profile.h"

namespace quern::report {

struct ProfileSummary {
  const Profile* profile = nullptr;  // the workers' threads, then the training thread
  size_t workers = 1;
  uint64_t steps = 0;
  double seconds = 0;      // of all steps, as measured by the training thread
  double peak_gflops = 0;  // of all workers together; 0: not measured
  double copy_gbs = 0;     // likewise
};

// The workers' time in the table as a share of workers x seconds: 1, except for what the timers miss.
double covered(const ProfileSummary& summary);

// Shares are of the workers' time; rates and limits are those of one worker. Lines end with \n.
std::string profile_table(const ProfileSummary& summary);

}  // namespace quern::report
