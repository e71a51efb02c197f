#include "dashboard/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace quern::dashboard {
namespace {

struct Line {
  uint64_t step;
  float value;
};

Table filled(const std::vector<Line>& lines) {
  Table table;
  const size_t column = table.column("loss");
  for (const Line& line : lines) {
    table.begin_row(line.step, static_cast<float>(line.step) / 10);
    table.set(column, line.value);
  }
  return table;
}

std::vector<Line> noise(size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Line> lines;
  for (size_t i = 0; i < count; ++i) lines.push_back({10 * (i + 1), normal(random)});
  return lines;
}

TEST(DashboardTable, ShowsEveryValueOfAShortRun) {
  const std::vector<Line> lines = noise(1500);
  const Table::Curve curve = filled(lines).curve(0, {}, 2000);
  EXPECT_FALSE(curve.decimated);
  ASSERT_EQ(curve.points.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(curve.points[i].step, lines[i].step);
    EXPECT_EQ(curve.points[i].value, lines[i].value);
    EXPECT_EQ(curve.points[i].seconds, static_cast<float>(lines[i].step) / 10);
  }
}

// Each point is compared with the lines that it stands for.
void check_against(const std::vector<Line>& lines, const Table::Curve& curve, double from, double to) {
  size_t next = 0;
  while (next < lines.size() && static_cast<double>(lines[next].step) < from) ++next;
  for (const Point& point : curve.points) {
    double sum = 0;
    float low = INFINITY, high = -INFINITY;
    size_t count = 0;
    for (; next < lines.size() && lines[next].step <= point.step; ++next, ++count) {
      sum += static_cast<double>(lines[next].value);
      low = std::min(low, lines[next].value);
      high = std::max(high, lines[next].value);
    }
    ASSERT_GT(count, 0u);
    EXPECT_EQ(point.low, low);
    EXPECT_EQ(point.high, high);
    EXPECT_NEAR(point.value, sum / static_cast<double>(count), 1e-5);
  }
  EXPECT_TRUE(next == lines.size() || static_cast<double>(lines[next].step) > to);
}

TEST(DashboardTable, DecimatesAnyRangeToMinimumMeanAndMaximum) {
  const std::vector<Line> lines = noise(100'000);
  const Table table = filled(lines);
  for (const auto& [from, to] : {std::pair{-1e300, 1e300}, std::pair{5000.0, 700'000.0}, std::pair{12'345.0, 345'678.0},
                                 std::pair{999'000.0, 2e6}, std::pair{20'000.0, 20'100.0}}) {
    const Table::Curve curve = table.curve(0, {.from = from, .to = to}, 2000);
    EXPECT_LE(curve.points.size(), 2001u);
    check_against(lines, curve, from, to);
  }
  EXPECT_EQ(table.curve(0, {.from = 20'000, .to = 20'100}, 2000).points.size(), 11u);
  EXPECT_TRUE(table.curve(0, {.from = 2e6, .to = 3e6}, 2000).points.empty());
  EXPECT_TRUE(table.curve(0, {.from = 500, .to = 400}, 2000).points.empty());
}

TEST(DashboardTable, SecondsAreAnAxisToo) {
  const Table table = filled(noise(1000));
  const Table::Curve curve = table.curve(0, {.by_seconds = true, .from = 100, .to = 200}, 2000);
  EXPECT_EQ(curve.points.front().step, 1000u);
  EXPECT_EQ(curve.points.back().step, 2000u);
}

// A million lines: rows are merged, and nothing is lost of the extremes.
TEST(DashboardTable, MergesRowsWhenItIsFull) {
  const std::vector<Line> lines = noise(4 * Table::kMaxRows + 12'345);
  const Table table = filled(lines);
  EXPECT_LE(table.rows(), Table::kMaxRows);
  EXPECT_EQ(table.count(0), lines.size());
  const Table::Curve curve = table.curve(0, {}, 2000);
  EXPECT_TRUE(curve.decimated);
  EXPECT_LE(curve.points.size(), 2001u);
  check_against(lines, curve, 0, 1e300);
  const auto lowest =
      std::min_element(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.value < b.value; });
  EXPECT_EQ(table.best(0, true)->value, lowest->value);
  EXPECT_EQ(table.last_step(), lines.back().step);
}

// A page that is updated must not flicker: points of the past stay where they are.
TEST(DashboardTable, PointsDoNotMoveWhenRowsAreAdded) {
  const std::vector<Line> lines = noise(60'000);
  const Table before = filled({lines.begin(), lines.begin() + 59'900});
  const Table after = filled(lines);
  const auto a = before.curve(0, {}, 2000).points, b = after.curve(0, {}, 2000).points;
  for (size_t i = 0; i + 1 < a.size(); ++i) ASSERT_EQ(a[i].step, b[i].step);
}

TEST(DashboardTable, TheNewestLineOfAStepCounts) {
  Table table = filled({{1, 5}, {2, 4}, {3, 3}, {4, 2}});
  table.begin_row(3, 0.3f);
  table.set(0, 9);
  const auto points = table.curve(0, {}, 100).points;
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[2].step, 3u);
  EXPECT_EQ(points[2].value, 9);
  EXPECT_EQ(table.count(0), 3u);
}

TEST(DashboardTable, WhatIsNotFiniteIsNotWhatWasNotLogged) {
  Table table;
  const size_t loss = table.column("loss"), other = table.column("other");
  table.begin_row(1, 0);
  table.set(loss, NAN);
  table.begin_row(2, 0);
  table.set(loss, 2);
  table.set(other, 7);
  const auto losses = table.curve(loss, {}, 100).points, others = table.curve(other, {}, 100).points;
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_TRUE(std::isnan(losses[0].value));
  EXPECT_EQ(losses[1].value, 2);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].step, 2u);
  EXPECT_EQ(table.best(loss, true)->step, 2u);
  const size_t late = table.column("late");
  EXPECT_TRUE(table.curve(late, {}, 100).points.empty());
  EXPECT_FALSE(table.last(late));
}

}  // namespace
}  // namespace quern::dashboard
