#include "report/run_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "report/metrics.h"
#include "report/run_summary.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::report {
namespace {

class RunLogTest : public ::testing::Test {
 protected:
  RunLog read(const std::string& text) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << text;
    return read_run_log(file_);
  }
  std::string table(const RunLog& log) { return to_text(summarise(config_, log), config_, 1234); }

  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "metrics.jsonl";
  train::RunConfig config_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(RunLogTest, ReadsTheOutputOfMetrics) {
  Metrics metrics(file_, 2);
  metrics.on_start({.first_step = 1, .steps = 5, .floor = {}});
  for (uint64_t i = 1; i <= 5; ++i) {
    train::StepReport report{.step = i, .loss = 6.0 / static_cast<double>(i), .rate = 1e-3, .gradient_norm = 1.5};
    report.tokens = 1000;
    report.seconds = 0.5;
    if (i == 4) report.memory = train::MemoryUse{.weights = 10, .planned = 70, .resident = 50, .peak = 60};
    if (i == 3) report.finite = false, report.loss = NAN;
    metrics.on_step(report);
  }
  metrics.on_validation(4, 2.5);
  metrics.on_warning("careful");
  const RunLog log = read_run_log(file_);
  EXPECT_TRUE(log.damaged.empty());
  ASSERT_EQ(log.steps.size(), 4u);  // 2, 3, 4, 5
  EXPECT_EQ(log.steps[0].loss, 3.0);
  EXPECT_EQ(log.steps[0].elapsed, 1.0);
  EXPECT_EQ(log.steps[0].tokens_per_s, 2000.0);
  EXPECT_TRUE(std::isnan(*log.steps[1].loss));
  EXPECT_TRUE(log.steps[1].skipped);
  EXPECT_EQ(log.steps[2].validation_loss, 2.5);
  EXPECT_EQ(log.steps[2].loss, 1.5);
  EXPECT_EQ(log.steps[2].memory->peak, 60u);
  EXPECT_FALSE(log.steps[3].memory.has_value());
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_EQ(log.warnings[0].step, 5u);
  EXPECT_EQ(to_csv(log),
            "step,loss,validation_loss,rate,gradient_norm,tokens_per_s,elapsed,skipped,memory_resident,memory_peak,"
            "memory_planned,memory_weights,memory_gradient,memory_moments,memory_batches,memory_arena,memory_pool\n"
            "2,3,,0.001,1.5,2000,1,0,,,,,,,,,\n"
            "3,nan,,0.001,1.5,2000,1.5,1,,,,,,,,,\n"
            "4,1.5,2.5,0.001,1.5,2000,2,0,50,60,70,10,0,0,0,0,0\n"
            "5,1.2,,0.001,1.5,2000,2.5,0,,,,,,,,,\n");
  const std::string text = table(log);
  EXPECT_TRUE(has(text, "1234 parameters")) << text;
  EXPECT_TRUE(has(text, "steps        5 of 1000, 10240 tokens")) << text;
  EXPECT_TRUE(has(text, "validation   2.5000 at step 4, best 2.5000 at step 4")) << text;
  EXPECT_TRUE(has(text, "1 update was skipped")) << text;
  EXPECT_TRUE(has(text, "step 5: careful")) << text;
}

TEST_F(RunLogTest, IncidentsAndOtherSkippedUpdatesAreSeparate) {
  Metrics metrics(file_, 1);
  metrics.on_start({.first_step = 1, .steps = 9, .floor = {}});
  metrics.on_incident({.step = 3,
                       .trouble = train::Trouble::kSpike,
                       .action = train::Policy::kRollback,
                       .resumed_after = 2,
                       .folder = "run/incidents/step-00000003",
                       .text = "step 3: the loss is 9"});
  metrics.on_incident({.step = 5,
                       .trouble = train::Trouble::kLoss,
                       .action = train::Policy::kSkip,
                       .resumed_after = 5,
                       .text = "step 5: the loss is NaN"});
  metrics.on_step({.step = 5, .loss = NAN, .trouble = train::Trouble::kLoss, .tokens = 1, .seconds = 1});
  metrics.on_step({.step = 6, .loss = 2, .finite = false, .tokens = 1, .seconds = 1});
  const RunLog log = read_run_log(file_);
  EXPECT_TRUE(log.damaged.empty());
  ASSERT_EQ(log.incidents.size(), 2u);
  EXPECT_EQ(log.incidents[0].folder, "step-00000003");
  EXPECT_EQ(log.incidents[1].resumed_after, 5u);
  const std::string text = table(log);
  EXPECT_TRUE(has(text, "incidents    step 3: the loss is 9; back to step 2\n")) << text;
  EXPECT_TRUE(has(text, "             step 5: the loss is NaN; skipped\n")) << text;
  EXPECT_TRUE(has(text, "warnings     1 update was skipped: the gradient")) << text;
}

TEST_F(RunLogTest, InvalidIncidentIsADamagedLine) {
  const RunLog log = read(
      "{\"step\":1,\"incident\":7}\n{\"step\":1,\"incident\":{}}\n{\"step\":1,\"incident\":{\"step\":2,\"text\":3}}\n");
  EXPECT_TRUE(log.incidents.empty());
  EXPECT_EQ(log.damaged.size(), 3u);
}

TEST_F(RunLogTest, LaterLineOfAStepWins) {
  const RunLog log = read(
      "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":null,\"skipped\":true}\n{\"step\":2,\"validation_loss\":9}\n"
      "{\"step\":3,\"loss\":1}\n{\"step\":2,\"loss\":2}\n");
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[1].loss, 2.0);
  EXPECT_FALSE(log.steps[1].skipped);
  EXPECT_EQ(log.steps[1].validation_loss, 9.0);
}

TEST_F(RunLogTest, DamagedLinesAreNamedAndSkipped) {
  const RunLog log = read(
      "{\"step\":1,\"loss\":3}\n{\"step\":2,\"lo\n\n{\"step\":-2,\"loss\":3}\n{\"loss\":3}\n[1]\n"
      "{\"step\":6,\"loss\":\"\x1b[31m\"}\n{\"step\":7,\"memory\":3}\n{\"step\":8,\"warning\":3}\n"
      "{\"step\":9,\"loss\":1,\"memory\":{\"peak\":-3,\"pool\":5}}\n{\"step\":10,\"new\":1}\n{\"step\":11,");
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.steps[1].memory->pool, 5u);
  ASSERT_EQ(log.damaged.size(), 9u);
  EXPECT_EQ(log.damaged[0], "metrics.jsonl:2: expected a JSON object, found '{\"step\":2,\"lo'");
  EXPECT_EQ(log.damaged[1], "metrics.jsonl:3: expected a JSON object, found ''");
  EXPECT_EQ(log.damaged[2], "metrics.jsonl:4: expected a step, found '{\"step\":-2,\"loss\":3}'");
  EXPECT_TRUE(log.damaged[5].starts_with("metrics.jsonl:7: ")) << log.damaged[5];
  EXPECT_TRUE(has(log.damaged[6], "metrics.jsonl:8: memory: expected an object, found '3'")) << log.damaged[6];
  EXPECT_TRUE(log.damaged[8].starts_with("metrics.jsonl:12: ")) << log.damaged[8];
  const std::string text = table(log);
  EXPECT_TRUE(has(text, "metrics.jsonl:2: ")) << text;
  EXPECT_TRUE(has(text, "and 1 more")) << text;
}

TEST_F(RunLogTest, MissingFileIsAnEmptyLog) {
  EXPECT_TRUE(read_run_log(file_).steps.empty());
  EXPECT_TRUE(read("").steps.empty());
  EXPECT_TRUE(has(table({}), "nothing logged yet"));
  EXPECT_THROW(read_run_log(folder_ / ""), Error);
}

TEST_F(RunLogTest, EscapeCodesInWarningsAreNotPrinted) {
  const RunLog log = read("{\"step\":1,\"warning\":\"a\\u001b[31m\\nb\"}\n");
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_EQ(log.warnings[0].text, "a\\x1b[31m b");
}

// A C1 control is an escape code in one character, and some characters turn the direction of what follows.
TEST_F(RunLogTest, NonAsciiControlCharactersAreNotPrinted) {
  const RunLog log = read(
      "{\"step\":1,\"warning\":\"a\\u009b31m\\u202eb\"}\n"
      "{\"step\":1,\"incident\":{\"step\":2,\"text\":\"\\u009b2J\",\"action\":\"\\u001b[2J\",\"folder\":\"\\u2066\"}}"
      "\n");
  ASSERT_EQ(log.warnings.size(), 1u);
  ASSERT_EQ(log.incidents.size(), 1u);
  const std::string text = table(log);
  for (const std::string_view control : {"\u009b", "\u202e", "\u2066", "\x1b"}) {
    EXPECT_FALSE(has(text, std::string(control))) << text;
    EXPECT_FALSE(has(log.incidents[0].action + log.incidents[0].folder, std::string(control)));
  }
}

// To show what was found instead of a number overflowed the stack.
TEST_F(RunLogTest, DeeplyNestedLineIsDamaged) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const RunLog log =
      read("{\"step\":1,\"loss\":" + deep + "}\n{\"step\":2,\"loss\":3}\n{\"step\":3,\"incident\":" + deep + "}\n");
  EXPECT_EQ(log.steps.size(), 1u);
  ASSERT_EQ(log.damaged.size(), 2u);
  EXPECT_TRUE(has(log.damaged[0], "metrics.jsonl:1: expected a JSON object, found '{\"step\":1")) << log.damaged[0];
}

TEST_F(RunLogTest, SurvivesTenThousandDamagedFiles) {
  test::Mutator mutator(
      {"{\"step\":1,\"loss\":3.5,\"elapsed\":2,\"tokens_per_s\":7,\"memory\":{\"peak\":5}}\n"
       "{\"step\":2,\"validation_loss\":3}\n{\"step\":2,\"warning\":\"x\"}\n"},
      {"{", "}", "[", "\n", "\"step\":", "-1", "1e999", "18446744073709551616", "null", "\xff", "1e308"}, 5);
  size_t steps = 0;
  for (int i = 0; i < 10'000; ++i) {
    const RunLog log = read(mutator.next());
    steps += log.steps.size();
    ASSERT_FALSE(table(log).empty());
  }
  EXPECT_GT(steps, 5000u);
}

TEST_F(RunLogTest, TheEndOfALongLogIsReadFromAWholeLine) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += "{\"step\":" + std::to_string(i) + ",\"loss\":2.5}\n";
  read(text);
  const RunLog all = read_run_log(file_), end = read_run_log(file_, 250);
  EXPECT_EQ(all.steps.size(), 1000u);
  EXPECT_EQ(end.steps.size(), 10u);  // 24 bytes each, and one of 25
  EXPECT_EQ(end.steps.back().step, 1000u);
  EXPECT_TRUE(end.damaged.empty());
  EXPECT_TRUE(read_run_log(file_, 0).steps.empty());
  EXPECT_EQ(read_run_log(file_, text.size()).steps.size(), 1000u);
  EXPECT_TRUE(read_run_log(folder_ / "none", 250).steps.empty());
}

// -1e308 was printed with 309 digits, and an elapsed time of 1e300 as hours that had overflowed.
TEST_F(RunLogTest, AbsurdNumbersArePrintedInBoundedWidth) {
  const RunLog log = read(
      "{\"step\":1,\"loss\":-1e308,\"rate\":1,\"gradient_norm\":1,\"tokens_per_s\":1e300,\"elapsed\":1e300}\n"
      "{\"step\":1,\"validation_loss\":1e200}\n");
  const std::string text = table(log);
  EXPECT_TRUE(has(text, "-1e+308 at step 1")) << text;
  EXPECT_TRUE(has(text, "1e+300 s of steps; 1e+300 tokens/s (1e+300 to 1e+300)")) << text;
  EXPECT_TRUE(has(text, "1e+200 at step 1, best 1e+200 at step 1")) << text;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) EXPECT_LE(line.size(), 120u) << line;
  EXPECT_TRUE(has(table(read("{\"step\":1,\"loss\":1.25,\"elapsed\":-5,\"tokens_per_s\":10}\n")), "-5 s of steps"));
}

}  // namespace
}  // namespace quern::report
