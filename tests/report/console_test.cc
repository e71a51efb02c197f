#include "report/console.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace quern::report {
namespace {

// A console that writes into memory.
class ConsoleTest : public ::testing::Test {
 protected:
  ConsoleTest() : out_(open_memstream(&text_, &size_)) {}
  ~ConsoleTest() override {
    std::fclose(out_);
    std::free(text_);
  }

  ConsoleOptions options(bool terminal) const {
    return {.out = out_, .terminal = terminal, .interval = 10, .peak_gflops = 100};
  }
  static train::RunStart run_of(uint64_t steps, uint64_t first_step = 1) {
    return {.first_step = first_step,
            .steps = steps,
            .parameters = 1234,
            .trainable = 1234,
            .train_tokens = 5678,
            .validation_tokens = 90,
            .vocabulary = 53,
            .flops_per_token = 1e6,
            .floor = {}};
  }
  static train::StepReport step(uint64_t number, double seconds) {
    return {.step = number, .loss = 2.5, .rate = 1e-3, .gradient_norm = 1, .tokens = 1000, .seconds = seconds};
  }

  // What was printed since the last call.
  std::string printed() {
    std::fflush(out_);
    std::string all(text_, size_);
    std::string fresh = all.substr(seen_);
    seen_ = all.size();
    return fresh;
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0, seen_ = 0;
  std::FILE* out_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

bool has(const std::string& text, const std::string& part) { return count(text, part) > 0; }

// A long phase is named immediately; its progress is shown at most ten times a second.
TEST_F(ConsoleTest, ShowsPreparationProgressOnATerminalOnly) {
  Console plain(options(false));
  plain.on_preparing("reading the text", 1, 4);
  EXPECT_EQ(printed(), "");
  Console console(options(true));
  for (int i = 0; i < 3; ++i) console.on_preparing("reading the text", 1, 4);
  console.on_preparing("learning a vocabulary", 0, 1);
  EXPECT_EQ(printed(), "\r\033[Kreading the text: 25 %\r\033[Klearning a vocabulary");
  console.on_start(run_of(100));
  EXPECT_TRUE(printed().starts_with("\r\033[K1234 parameters; 5678 training tokens"));
}

TEST_F(ConsoleTest, EstimatesAreLabelled) {
  Console console(options(false));
  train::RunStart start = run_of(100);
  start.estimated = true;
  console.on_start(start);
  EXPECT_TRUE(has(printed(), "; about 5678 training tokens, 90 held out"));
}

TEST_F(ConsoleTest, DescribesTheRun) {
  Console console(options(false));
  console.on_start(run_of(100));
  EXPECT_EQ(printed(), "1234 parameters; 5678 training tokens, 90 held out, vocabulary 53\n");
  train::RunStart adapted = run_of(100);
  adapted.trainable = 34;
  console.on_start(adapted);
  EXPECT_TRUE(has(printed(), "1234 parameters, 34 of them trained; 5678 training tokens"));
  train::RunStart resumed = run_of(100, 41);
  resumed.floor = 0.0825;
  console.on_start(resumed);
  const std::string text = printed();
  EXPECT_TRUE(has(text, "resuming at step 41\n")) << text;
  // The entropy bounds the average over unseen text, not the loss of every text: 0.061 was once reached on few stories.
  EXPECT_TRUE(has(text, "best achievable loss: 0.08")) << text;
  EXPECT_TRUE(has(text, "on average over unseen text")) << text;
  EXPECT_FALSE(has(text, "no model can")) << text;
}

TEST_F(ConsoleTest, PlainLinesAtTheFirstStepEveryIntervalAndTheLast) {
  Console console(options(false));
  console.on_start(run_of(25));
  printed();
  std::string steps;
  for (uint64_t i = 1; i <= 25; ++i) {
    console.on_step(step(i, 0.01));
    const std::string text = printed();
    if (!text.empty()) steps += std::to_string(i) + " ";
    EXPECT_EQ(count(text, "\n"), text.empty() ? 0u : 1u);
    EXPECT_FALSE(has(text, "\r") || has(text, "\033")) << text;
  }
  EXPECT_EQ(steps, "1 10 20 25 ");
}

TEST_F(ConsoleTest, LineHasLossSpeedUtilisationAndTimeLeft) {
  Console console(options(false));
  console.on_start(run_of(3601));
  printed();
  console.on_step(step(1, 0.02));  // 50,000 tokens/s of 1 MFLOP each, of a peak of 100 GFLOPS
  EXPECT_EQ(printed(), "step 1/3601  loss 2.500  50000 tokens/s  MFU 50 %  limit: compute  1m12s left\n");
  console.on_validation(1, 2.25);
  EXPECT_EQ(printed(), "step 1/3601  validation 2.2500\n");
  console.on_step(step(10, 0.02));
  EXPECT_TRUE(has(printed(), "loss 2.500  validation 2.250  50000 tokens/s"));
}

// The machine was busy while the peak was measured, and is free now; or it is still busy.
TEST_F(ConsoleTest, ImpossibleUtilisationIsRemeasuredOrHidden) {
  ConsoleOptions wrong = options(false);
  wrong.interval = 1;
  wrong.peak_gflops = 40;
  wrong.measure_peak = [] { return 100.0; };
  Console console(wrong);
  console.on_start(run_of(3601));
  printed();
  console.on_step(step(1, 0.02));
  EXPECT_EQ(printed(), "step 1/3601  loss 2.500  50000 tokens/s  MFU 50 %  limit: compute  1m12s left\n");
  wrong.measure_peak = [] { return 44.0; };
  Console busy(wrong);
  busy.on_start(run_of(3601));
  printed();
  busy.on_step(step(1, 0.02));
  const std::string text = printed();
  EXPECT_TRUE(has(text, "50000 tokens/s  MFU unknown (machine busy)")) << text;
  EXPECT_FALSE(has(text, "%")) << text;
}

// A warning may name a file of others.
TEST_F(ConsoleTest, WarningsAreShownWithoutControlCharacters) {
  Console console(options(false));
  console.on_warning("passed over a\x1b[2Jb\nc");
  EXPECT_EQ(printed(), "warning: passed over a\\x1b[2Jb c\n");
}

TEST_F(ConsoleTest, LongTimesAreInHours) {
  Console console({.out = options(false).out, .terminal = false, .interval = 1, .peak_gflops = 0});
  console.on_start(run_of(3661));
  printed();
  console.on_step(step(1, 1));
  const std::string text = printed();
  EXPECT_TRUE(has(text, "1h01m left")) << text;
  EXPECT_FALSE(has(text, "MFU")) << text;  // the peak is not known
}

TEST_F(ConsoleTest, SpeedIsThatOfTheLastSteps) {
  Console console(options(false));
  console.on_start(run_of(1000));
  for (uint64_t i = 1; i <= 100; ++i) console.on_step(step(i, 0.1));
  for (uint64_t i = 101; i <= 199; ++i) console.on_step(step(i, 0.01));
  printed();
  console.on_step(step(200, 0.01));
  const std::string text = printed();
  EXPECT_TRUE(has(text, "  99976 tokens/s")) << text;  // 0.9^100 of the past is left
}

TEST_F(ConsoleTest, TerminalLineIsUpdatedInPlace) {
  Console console(options(true));
  console.on_start(run_of(100));
  printed();
  for (uint64_t i = 1; i <= 100; ++i) console.on_step(step(i, 0.25));
  console.on_validation(100, 2.0);
  const std::string text = printed();
  EXPECT_EQ(count(text, "\r\033[Kstep "), 100u);
  EXPECT_EQ(count(text, "\n"), 0u);
  console.finish();
  console.finish();
  EXPECT_EQ(printed(), "\n");
}

// Ten times a second is as much as anyone reads; a terminal far away would slow the training down.
TEST_F(ConsoleTest, TerminalSkipsFastStepsExceptTheLast) {
  Console console(options(true));
  console.on_start(run_of(1000));
  printed();
  for (uint64_t i = 1; i <= 1000; ++i) console.on_step(step(i, 0.001));
  const std::string text = printed();
  EXPECT_GE(count(text, "\r"), 9u);
  EXPECT_LE(count(text, "\r"), 12u);
  EXPECT_TRUE(has(text, "step 1000/1000"));
}

TEST_F(ConsoleTest, WarningEndsTheCurrentLine) {
  Console console(options(true));
  console.on_start(run_of(100));
  console.on_step(step(1, 1));
  printed();
  console.on_warning("passed over step-00000009");
  EXPECT_EQ(printed(), "\nwarning: passed over step-00000009\n");
  console.finish();
  EXPECT_EQ(printed(), "");
}

TEST_F(ConsoleTest, SkippedUpdateIsAWarning) {
  Console console(options(false));
  console.on_start(run_of(100));
  printed();
  train::StepReport report = step(7, 1);
  report.finite = false;
  console.on_step(report);
  EXPECT_EQ(printed(), "warning: step 7: the gradient is not finite; its update was skipped\n");
}

}  // namespace
}  // namespace quern::report
