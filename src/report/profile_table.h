// A profile as a table: where the time went, and how near to the machine's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "quern/profile.h"

namespace quern::report {

struct ProfileSummary {
  const Profile* profile = nullptr;  // the workers' threads, and then the one that trains
  size_t workers = 1;
  uint64_t steps = 0;
  double seconds = 0;      // of all steps, as measured by the thread that trains
  double peak_gflops = 0;  // of all workers together; 0: not measured
  double copy_gbs = 0;     // likewise
};

// The workers' time in the table, as a share of workers x seconds: 1, but for what escapes the timers.
double covered(const ProfileSummary& summary);

// Shares are of the workers' time, rates are those of one worker, and limits are beside them. Lines end with \n.
std::string profile_table(const ProfileSummary& summary);

}  // namespace quern::report
