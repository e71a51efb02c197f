#include "report/loss_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

namespace quern::report {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t count(const std::string& text, char mark) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), mark));
}

std::string plot_of(const std::string& text) {  // what is right of the axis
  std::string plot;
  for (const std::string& line : lines_of(text)) {
    if (line.size() > 9 && (line[9] == '|' || line[9] == '+')) plot += line.substr(10) + "\n";
  }
  return plot;
}

TEST(LossCurve, FewPointsAreAtTheirPositions) {
  EXPECT_EQ(draw_losses({{1, 4}, {2, 3}, {3, 2}, {4, 1}}, {{4, 1.5}}, {.width = 40, .height = 7}),
            "       4 |*\n"
            "     3.5 |\n"
            "       3 |          *\n"
            "     2.5 |\n"
            "       2 |                   *\n"
            "     1.5 |                             o\n"
            "       1 |                             *\n"
            "         +------------------------------\n"
            "          step 1                       4\n"
            "          * training (. min to max)   o validation\n");
}

TEST(LossCurve, HandlesOnePointAndNone) {
  EXPECT_EQ(count(plot_of(draw_losses({{7, 2}}, {}, {})), '*'), 1u);
  EXPECT_EQ(count(plot_of(draw_losses({}, {LossPoint{7, 0.0}}, {})), 'o'), 1u);
  EXPECT_EQ(draw_losses({}, {}, {}), "no loss was logged\n");
  EXPECT_EQ(draw_losses({{1, NAN}}, {{2, INFINITY}}, {}), "no finite loss was logged\n");
}

TEST(LossCurve, ColumnShowsMeanAndSpreadOfItsPoints) {
  std::vector<LossPoint> points;
  for (uint64_t step = 1; step <= 100'000; ++step) points.push_back({step, 2 + (step % 2 == 0 ? 0.5 : -0.5)});
  const std::string text = draw_losses(points, {}, {.width = 60, .height = 9});
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_EQ(lines[0].substr(10), std::string(50, '.'));
  EXPECT_EQ(lines[4].substr(10), std::string(50, '*'));
  EXPECT_EQ(lines[8].substr(10), std::string(50, '.'));
  EXPECT_EQ(count(plot_of(text), '^'), 0u);
}

// The rest keeps its shape: both ends of the scale are used by ordinary losses.
TEST(LossCurve, AHugeSpikeDoesNotFlattenTheRest) {
  std::vector<LossPoint> points;
  for (uint64_t step = 1; step <= 300; ++step) points.push_back({step, 4 * std::exp(-static_cast<double>(step) / 80)});
  const std::string calm = draw_losses(points, {}, {});
  points[200].loss = 1e12;
  const std::string text = draw_losses(points, {}, {});
  EXPECT_EQ(count(plot_of(text), '^'), 1u);
  EXPECT_NE(text.find("^ above the scale, up to 1e+12 at step 201"), std::string::npos) << text;
  EXPECT_EQ(lines_of(text)[0].substr(0, 9), lines_of(calm)[0].substr(0, 9));
  EXPECT_GT(count(plot_of(text), '*'), 60u);
}

TEST(LossCurve, NonFiniteLossesAreMarkedOnTheAxis) {
  const std::string text = draw_losses({{1, 3}, {2, NAN}, {3, 2}}, {{3, -INFINITY}}, {.width = 40, .height = 4});
  EXPECT_EQ(lines_of(text)[4], "         +---------------x-------------x");
  EXPECT_NE(text.find("x not finite (2)"), std::string::npos) << text;
}

// Nothing is drawn outside, and no line is longer than asked for, whatever is drawn.
TEST(LossCurve, StaysWithinItsWidth) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<LossPoint> training, validation;
    uint64_t step = random() % 1000;
    const size_t points = random() % 40;
    for (size_t k = 0; k < points; ++k) {
      step += i % 7 == 0 ? random() % 1'000'000'000 : 1 + random() % 50;
      const double exponent = static_cast<double>(random() % 600) - 300;
      const double loss = i % 3 == 0 ? std::pow(10, exponent) : static_cast<double>(random() % 1000) / 100;
      (random() % 4 == 0 ? validation : training).push_back({step, i % 5 == 0 ? -loss : loss});
    }
    const size_t width = 40 + random() % 100;
    const CurveOptions options{.width = width, .height = 4 + random() % 20};
    const std::vector<std::string> lines = lines_of(draw_losses(training, validation, options));
    for (size_t k = 0; k < lines.size() && lines[k].find("training") == std::string::npos &&
                       lines[k].find("validation") == std::string::npos && points > 0;
         ++k) {
      ASSERT_LE(lines[k].size(), width) << lines[k];
    }
  }
}

TEST(LossCurve, EscapeCodesOnlyOnRequest) {
  const std::vector<LossPoint> points = {{1, 3}, {2, NAN}, {3, 2}};
  EXPECT_EQ(draw_losses(points, points, {}).find('\033'), std::string::npos);
  std::string colored = draw_losses(points, points, {.color = true});
  EXPECT_NE(colored.find('\033'), std::string::npos);
  for (size_t at; (at = colored.find('\033')) != std::string::npos;) colored.erase(at, colored.find('m', at) - at + 1);
  EXPECT_EQ(colored, draw_losses(points, points, {}));
}

}  // namespace
}  // namespace quern::report
