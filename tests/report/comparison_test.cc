#include "report/comparison.h"

#include <gtest/gtest.h>

#include "report/loss_curve.h"

namespace quern::report {
namespace {

ComparedRun run_of(const std::string& name, double rate, uint64_t steps) {
  ComparedRun run{.name = name, .config = {}, .log = {}, .summary = {}};
  run.config.optimizer.rate = rate;
  run.config.train.steps = steps;
  for (uint64_t step = 10; step <= steps; step += 10) {
    LoggedStep logged;
    logged.step = step;
    logged.loss = 5.0 - 0.01 * static_cast<double>(step);
    logged.tokens_per_s = 1000;
    logged.elapsed = 0.5 * static_cast<double>(step);
    if (step == 20) logged.validation_loss = 4.5;
    if (step == 30) logged.validation_loss = 4.75;
    run.log.steps.push_back(logged);
  }
  run.summary = summarise(run.config, run.log);
  return run;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Comparison, OnlySettingsThatDifferAreShown) {
  const auto differences = differing_settings({run_of("a", 0.002, 30), run_of("b", 0.001, 30)});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].setting, "optimizer.rate");
  EXPECT_EQ(differences[0].values, (std::vector<std::string>{"0.002", "0.001"}));
  EXPECT_TRUE(differing_settings({run_of("a", 0.002, 30), run_of("b", 0.002, 30)}).empty());
}

TEST(Comparison, TableHasSettingsAndResults) {
  EXPECT_EQ(comparison_text({run_of("runs/a", 0.002, 30), run_of("runs/b", 0.001, 20)}, 80),
            "A  runs/a\n"
            "B  runs/b\n"
            "\n"
            "                 A             B\n"
            "train.steps      30            20\n"
            "optimizer.rate   0.002         0.001\n"
            "\n"
            "steps            30 of 30      20 of 20\n"
            "loss             4.7000        4.8000\n"
            "validation loss  4.7500        4.5000\n"
            "best validation  4.5000 at 20  4.5000 at 20\n"
            "time             0m15s         0m10s\n"
            "tokens/s         1000          1000\n"
            "peak memory      -             -\n");
}

TEST(Comparison, RunsThatDoNotFitFollowInAnotherBlock) {
  std::vector<ComparedRun> runs;
  for (int i = 0; i < 7; ++i) runs.push_back(run_of("run", 0.001 * (i + 1), 30));
  const std::string text = comparison_text(runs, 60);
  size_t lines = 0, longest = 0, begin = 0;
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', begin)) {
    longest = std::max(longest, at - begin);
    begin = at + 1;
    ++lines;
  }
  EXPECT_LE(longest, 60u);
  EXPECT_TRUE(has(text, "                 A             B             C\n"));
  EXPECT_TRUE(has(text, "                 G\n"));
  EXPECT_TRUE(has(comparison_text(runs, 1), "                 A\n"));  // one column at least
  EXPECT_GT(lines, 3 * 11u);
}

TEST(Comparison, EqualSettingsAreNamedAndLongValuesAreCut) {
  EXPECT_TRUE(has(comparison_text({run_of("a", 1, 30), run_of("b", 1, 30)}, 80), "the settings are equal\n"));
  ComparedRun run = run_of("a", 1, 30);
  run.config.data.paths = {"/a/very/long/path/to/the/text/of/a/book.txt"};
  const std::string text = comparison_text({run, run_of("b\033[31m", 1, 30)}, 80);
  EXPECT_TRUE(has(text, ".../the/text/of/a/book.txt\"]")) << text;
  EXPECT_FALSE(has(text, "\033"));
}

TEST(Comparison, CsvStartsWithTheRun) {
  const std::string text = comparison_csv({run_of("a", 1, 10), run_of("b,\"c\"", 1, 20)});
  EXPECT_TRUE(text.starts_with("run,step,loss,"));
  EXPECT_TRUE(has(text, "\n\"a\",10,4.9,"));
  EXPECT_TRUE(has(text, "\n\"b,\"\"c\"\"\",20,4.8,4.5,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Comparison, CurvesAreLettersAndMeetInAPlus) {
  const std::string text = draw_runs({{.training = {{1, 4}, {2, 3}, {3, 2}, {4, 1}}, .validation = {{4, 1.5}}},
                                      {.training = {{1, 4}, {2, 2}, {4, 3}}, .validation = {}}},
                                     {.width = 40, .height = 7});
  EXPECT_EQ(text,
            "       4 |+\n"
            "     3.5 |\n"
            "       3 |          A                  B\n"
            "     2.5 |\n"
            "       2 |          B        A\n"
            "     1.5 |                             a\n"
            "       1 |                             A\n"
            "         +------------------------------\n"
            "          step 1                       4\n"
            "          A, B, ... training   a, b, ... validation   + several runs\n");
  EXPECT_EQ(draw_runs({{}, {}}, {}), "no loss was logged\n");
}

TEST(Comparison, CurvesOfManyRunsWithOddLosses) {
  std::vector<RunLosses> runs(kMaxCurves);
  for (size_t i = 0; i < runs.size(); ++i) {
    for (uint64_t step = 1; step <= 50; ++step)
      runs[i].training.push_back({step * (i + 1), 3.0 + static_cast<double>(i)});
  }
  runs[3].training.push_back({10'000, 1e30});
  runs[3].validation.push_back({10'000, std::numeric_limits<double>::quiet_NaN()});
  const std::string text = draw_runs(runs, {.width = 100, .height = 40});
  for (const char letter : {'A', 'M', 'W'}) EXPECT_TRUE(has(text, std::string(1, letter))) << letter;
  EXPECT_TRUE(has(text, "x not finite (1)"));
  EXPECT_TRUE(has(text, "^ above the scale, up to 1e+30 at step 10000"));
}

}  // namespace
}  // namespace quern::report
