#include "report/utilisation.h"

#include <gtest/gtest.h>

#include <vector>

namespace quern::report {
namespace {

TEST(Utilisation, IsAFractionOfThePeak) {
  Utilisation utilisation(100, [] { return 1000.0; });
  EXPECT_EQ(utilisation.share(50), 0.5);
  EXPECT_EQ(utilisation.share(96), 0.96);
  EXPECT_EQ(utilisation.peak_gflops(), 100) << "nothing was wrong with the first peak";
}

// A run printed "MFU 98 %", and another 113 %: other programs had had the cores while the peak was measured.
TEST(Utilisation, MeasuresAgainWhereStepsBeatThePeak) {
  int looks = 0;
  Utilisation utilisation(60, [&] { return ++looks < 3 ? 50.0 : 100.0; });
  EXPECT_EQ(utilisation.share(68), 0.68);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(utilisation.peak_gflops(), 100);
  EXPECT_EQ(utilisation.share(70), 0.70);
  EXPECT_EQ(looks, 3);
}

TEST(Utilisation, ImpossibleValueIsNone) {
  int looks = 0;
  Utilisation utilisation(60, [&] {
    ++looks;
    return 65.0;
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(utilisation.share(68), std::nullopt);
  EXPECT_EQ(looks, Utilisation::kMaxLooks);
  EXPECT_EQ(utilisation.share(52), 52.0 / 68) << "a step has done 68, so the peak is no less";
  EXPECT_EQ(Utilisation(60).share(68), std::nullopt);
}

// A peak that was 10 % too low made every share 10 % too high, and none of them was more than can be.
TEST(Utilisation, PeakIsTheBestOfSeveralMeasurements) {
  std::vector<double> looks = {95, 100, 80, 99};
  size_t done = 0;
  Utilisation utilisation(90, [&] { return looks.at(done++); });
  utilisation.look_after(0.9);
  EXPECT_EQ(utilisation.share(63), 0.7);
  EXPECT_EQ(done, 0u);
  utilisation.look_after(1.0);
  utilisation.look_after(1.5);
  EXPECT_EQ(done, 1u);
  EXPECT_EQ(utilisation.peak_gflops(), 95);
  for (double elapsed = 2; elapsed < 100; elapsed += 0.5) utilisation.look_after(elapsed);
  EXPECT_EQ(done, looks.size());
  EXPECT_EQ(utilisation.peak_gflops(), 100);
  EXPECT_EQ(utilisation.share(63), 0.63);
}

TEST(Utilisation, IsNoneWithoutAPeak) {
  Utilisation utilisation(0, [] { return 100.0; });
  EXPECT_EQ(utilisation.share(1), std::nullopt);
  EXPECT_EQ(utilisation.peak_gflops(), 0);
}

}  // namespace
}  // namespace quern::report
