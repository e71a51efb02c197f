#include "report/profile_table.h"

#include <gtest/gtest.h>

#include "core/thread_profile.h"

namespace quern::report {
namespace {

const Region kProduct("table product", Unit::kFlops), kCopy("table copy", Unit::kBytes), kWait("table wait"),
    kSave("table save");

void add(Profile& profile, size_t thread, const Region& region, double seconds, double work) {
  profile.thread(thread).add({0, 1, static_cast<uint32_t>(region.id()), 0, 1, 1}, static_cast<int64_t>(seconds * 1e9),
                             work);
}

TEST(ProfileTable, HasSharesTimesRatesAndLimits) {
  Profile profile({.threads = 3});
  add(profile, 0, kProduct, 1.0, 60e9);
  add(profile, 1, kProduct, 0.5, 30e9);
  add(profile, 0, kCopy, 0.25, 2e9);
  add(profile, 1, kWait, 0.24, 0);
  add(profile, 2, kSave, 0.0125, 0);  // the thread that trains
  const ProfileSummary summary{
      .profile = &profile, .workers = 2, .steps = 7, .seconds = 1, .peak_gflops = 150, .copy_gbs = 20};
  EXPECT_DOUBLE_EQ(covered(summary), 0.995);
  EXPECT_EQ(
      profile_table(summary),
      "profile of 7 steps: 1.00 s x 2 workers\n"
      "limits of a worker: 75.0 GFLOPS (FMA peak), 10.0 GB/s (copy from and to memory)\n"
      "\n"
      "operation                      share    total  average      min      max    count          rate  of limit\n"
      "table product                75.00 %   1.50 s   750 ms   500 ms   1.00 s        2   60.0 GFLOPS      80 %\n"
      "table copy                   12.50 %   250 ms   250 ms   250 ms   250 ms        1      8.0 GB/s      80 %\n"
      "table wait                   12.00 %   240 ms   240 ms   240 ms   240 ms        1\n"
      "sum                          99.50 %   1.99 s\n"
      "\n"
      "training thread, meanwhile:\n"
      "table save                            12.5 ms  12.5 ms  12.5 ms  12.5 ms        1\n");
}

TEST(ProfileTable, OmitsUnknownLimits) {
  Profile profile({});
  add(profile, 0, kProduct, 12.5e-6, 1e6);
  const std::string text = profile_table({.profile = &profile, .workers = 1, .steps = 1, .seconds = 12.5e-6});
  EXPECT_EQ(text.find("limits of"), std::string::npos) << text;
  EXPECT_NE(text.find("12.5 us        1   80.0 GFLOPS\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace quern::report
