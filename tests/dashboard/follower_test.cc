#include "dashboard/follower.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "core/clock.h"
#include "core/files.h"
#include "core/process_memory.h"
#include "report/metrics.h"
#include "report/run_log.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::dashboard {
namespace {

std::string step_line(uint64_t step, double loss) {
  return fmt::format(R"({{"step":{},"loss":{},"rate":0.001,"gradient_norm":0.5,"tokens_per_s":1000,"elapsed":{}}})",
                     step, loss, 0.25 * static_cast<double>(step)) +
         "\n";
}

class FollowerTest : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(file_, std::ios::app | std::ios::binary) << text; }
  static std::vector<Point> curve(const RunData& data, std::string_view name) {
    const auto field = data.field(name);
    return field ? data.table(*field).curve(field->column, {}, 1'000'000).points : std::vector<Point>();
  }

  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "metrics.jsonl";
};

TEST_F(FollowerTest, ReadsCompleteLinesAsTheFileGrows) {
  Follower follower(file_);
  EXPECT_FALSE(follower.update());  // no file yet
  append(step_line(1, 3));
  EXPECT_TRUE(follower.update());
  EXPECT_FALSE(follower.update());
  const std::string second = step_line(2, 2.5);
  append(second.substr(0, 20));
  EXPECT_FALSE(follower.update());  // torn
  append(second.substr(20));
  EXPECT_TRUE(follower.update());
  EXPECT_EQ(follower.data().lines(), 2u);
  EXPECT_EQ(follower.data().step(), 2u);
  EXPECT_EQ(follower.data().damaged(), 0u);
  const auto points = curve(follower.data(), "loss");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].value, 2.5f);
  EXPECT_EQ(points[1].seconds, 0.5f);
}

TEST_F(FollowerTest, ReadsAReplacedOrShorterFileAnew) {
  Follower follower(file_);
  append(step_line(1, 3) + step_line(2, 2) + step_line(3, 1));
  EXPECT_TRUE(follower.update());
  write_file(file_, step_line(1, 3) + step_line(2, 9) + step_line(4, 8));  // as long as before, as a resumed run does
  EXPECT_TRUE(follower.update());
  EXPECT_EQ(curve(follower.data(), "loss").back().value, 8);
  std::filesystem::resize_file(file_, step_line(1, 3).size());
  EXPECT_TRUE(follower.update());
  EXPECT_EQ(curve(follower.data(), "loss").size(), 1u);
  std::filesystem::remove(file_);
  EXPECT_FALSE(follower.update());
  EXPECT_FALSE(follower.is_there());
  EXPECT_EQ(curve(follower.data(), "loss").size(), 1u);  // what was read stays
}

TEST_F(FollowerTest, CountsDamagedLinesAndShowsThem) {
  append(step_line(1, 3) + "garbage\n" + "\n" + R"({"step":-1,"loss":2})" + "\n" + R"({"step":2,"loss":"x"})" + "\n" +
         R"({"step":2,"memory":3})" + "\n" + std::string(100, '[') + "\n" + step_line(3, 1));
  Follower follower(file_);
  follower.update();
  EXPECT_EQ(follower.data().damaged(), 6u);
  EXPECT_EQ(follower.data().lines(), 8u);
  ASSERT_EQ(follower.data().events().size(), 6u);
  EXPECT_EQ(follower.data().events()[0].kind, "damage");
  EXPECT_EQ(follower.data().events()[0].text, "metrics.jsonl:2: expected a JSON object, found 'garbage'");
  EXPECT_EQ(curve(follower.data(), "loss").size(), 2u);
}

TEST_F(FollowerTest, ALineWithoutEndTakesNoMemoryAndHidesNoOther) {
  append(step_line(1, 3));
  const std::string much(size_t{1} << 20, 'x');
  for (int i = 0; i < 12; ++i) append(much);
  Follower follower(file_);
  follower.update();
  EXPECT_EQ(follower.data().lines(), 1u);
  append("\n" + step_line(2, 2));
  follower.update();
  EXPECT_EQ(follower.data().lines(), 3u);
  EXPECT_EQ(follower.data().damaged(), 1u);
  EXPECT_EQ(follower.data().step(), 2u);
}

// Everything that Metrics writes is understood, and has the values of the other reader.
TEST_F(FollowerTest, AgreesWithTheOtherReaderOnWhatARunWrites) {
  report::Metrics metrics(file_,
                          {.interval = 1, .process = true, .command = "quern train", .version = "1", .data = "x"});
  metrics.on_start({.first_step = 1, .steps = 50, .floor = {}, .loss_parts = {"policy", "value"}});
  const train::TensorHealth tensors[] = {{"wte.weight", 1.5, 0, 2, 0, 1e-3}, {"h.0.bias", NAN, 0, 1, 0, 0}};
  for (uint64_t step = 1; step <= 50; ++step) {
    train::StepReport report{.step = step, .loss = 3.0 / static_cast<double>(step), .rate = 1e-3, .gradient_norm = 2};
    report.loss_parts = {1, 2};
    report.tokens = 100;
    report.seconds = 0.3;
    if (step == 20) report.loss = INFINITY, report.trouble = train::Trouble::kLoss;
    if (step % 2 == 0) report.memory = train::MemoryUse{.resident = step, .peak = step + 1};
    metrics.on_step(report);
    if (step % 10 == 0) metrics.on_validation(step, 2.0 / static_cast<double>(step));
    if (step % 10 == 0) metrics.on_health({.step = step, .norm = 1, .tensors = tensors});
    if (step == 25) metrics.on_warning("a warning");
    if (step == 25) metrics.on_checkpoint(25, "checkpoints/step-00000025");
    if (step == 30) metrics.on_sample({30, "Once", "upon a time"});
    if (step == 30) metrics.on_selfplay({.step = 30, .complete = true, .games = 7});
    if (step == 30) metrics.on_rating({.step = 30, .games = 40, .elo = 123});
  }
  metrics.on_end({.finished = true});
  Follower follower(file_);
  follower.update();
  const RunData& data = follower.data();
  const report::RunLog log = report::read_run_log(file_);
  EXPECT_EQ(data.damaged(), 0u);
  EXPECT_TRUE(log.damaged.empty());
  const auto losses = curve(data, "loss");
  ASSERT_EQ(losses.size(), log.steps.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(losses[i].step, log.steps[i].step);
    if (i == 19) {
      EXPECT_TRUE(std::isnan(losses[i].value));
    } else {
      EXPECT_EQ(losses[i].value, static_cast<float>(*log.steps[i].loss));
    }
    EXPECT_EQ(losses[i].seconds, static_cast<float>(*log.steps[i].elapsed));
  }
  EXPECT_EQ(curve(data, "validation_loss").size(), 5u);
  EXPECT_EQ(curve(data, "memory.peak").size(), 25u);
  EXPECT_EQ(curve(data, "memory.peak")[3].value, 9);
  EXPECT_EQ(curve(data, "loss_parts.value")[7].value, 2);
  EXPECT_EQ(curve(data, "rating.elo")[0].value, 123);
  EXPECT_EQ(curve(data, "selfplay.games")[0].value, 7);
  const HeatMap& health = data.heat_maps().at("health");
  EXPECT_EQ(health.rows, (std::vector<std::string>{"wte.weight", "h.0.bias"}));
  EXPECT_EQ(health.steps, (std::vector<uint64_t>{10, 20, 30, 40, 50}));
  EXPECT_EQ(health.columns[4][0], 1.5f);
  EXPECT_TRUE(std::isnan(health.columns[4][HeatMap::kMaxMeasures]));
  std::vector<std::string> kinds;
  for (const Event& event : data.events()) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"start", "warning", "checkpoint", "end"}));
  EXPECT_EQ(data.texts().at("sample")[0].text, "upon a time");
  EXPECT_EQ(data.start()->facts["command"], "quern train");
  EXPECT_TRUE(data.end() && data.end()->finished);
}

// Mutated copies of a good file, cut anywhere and in pieces of any size: no crash, and never more lines than there are.
TEST_F(FollowerTest, SurvivesDamage) {
  std::string good;
  for (uint64_t step = 1; step <= 60; ++step) {
    good += step_line(step, 1.0 / static_cast<double>(step));
    if (step % 10 == 0) {
      good += fmt::format(R"({{"step":{},"health":{{"a":{{"norm":1,"update_ratio":null}},"b":{{"norm":2}}}}}})", step) +
              "\n";
      good += fmt::format(R"({{"step":{},"validation_loss":2}})", step) + "\n";
      good += fmt::format(R"({{"step":{},"warning":"w \" \u1234"}})", step) + "\n";
      good += fmt::format(R"({{"step":{},"sample":{{"prompt":"p","text":"t"}}}})", step) + "\n";
      good += fmt::format(R"({{"step":{},"start":{{"time":"t","threads":2}}}})", step) + "\n";
    }
  }
  test::Mutator mutator({good}, {"null", "\"loss\":", "1e999", "\n", "{", "health"}, 7);
  for (int i = 0; i < 3000; ++i) {
    const std::string bad = mutator.next();
    RunData data;
    size_t begin = 0, lines = 0;
    for (size_t end; (end = bad.find('\n', begin)) != std::string::npos; begin = end + 1, ++lines) {
      data.add(std::string_view(bad).substr(begin, end - begin));
    }
    EXPECT_EQ(data.lines(), lines);
    EXPECT_LE(data.damaged(), lines);
  }
}

// The fast way and the parser agree on every line, damaged or not: a line that is only read the fast way because others
// came before it gives the same numbers alone.
TEST_F(FollowerTest, TheFastWayAcceptsNothingThatTheParserDoesNot) {
  test::Mutator mutator({step_line(7, 0.125)}, {"null", "\"step\":", "1e99", "-0", "true"}, 11);
  RunData warm;
  warm.add(R"({"step":1,"loss":1,"rate":0.001,"gradient_norm":0.5,"tokens_per_s":1000,"elapsed":0.25})");
  for (int i = 0; i < 20'000; ++i) {
    std::string line = mutator.next();
    line = line.substr(0, line.find('\n'));
    RunData cold;
    cold.add(line);
    const uint64_t before = warm.damaged();
    warm.add(line);
    EXPECT_EQ(warm.damaged() - before, cold.damaged()) << line;
    if (cold.damaged() > 0 || cold.step() == 0 || !cold.field("loss")) continue;
    const auto a = curve(cold, "loss"), b = curve(warm, "loss");
    if (a.empty() || warm.step() != cold.step()) continue;
    EXPECT_TRUE(std::abs(a.back().value - b.back().value) <= 1e-6f * std::abs(a.back().value) ||
                std::isnan(a.back().value) || std::isinf(a.back().value))
        << line;
  }
}

// Measured: 0.2 s of CPU time for 1,000,000 lines of 159 MB on a 2-core Zen 5. The bound leaves room for a slower
// machine.
TEST_F(FollowerTest, ReadsAMillionLinesFast) {
  {
    std::ofstream file(file_, std::ios::binary);
    std::string block;
    std::mt19937 random(1);
    for (uint64_t step = 1; step <= 1'000'000; ++step) {
      const double noise = static_cast<double>(random()) / 4294967296.0;
      fmt::format_to(std::back_inserter(block),
                     R"({{"step":{},"loss":{},"rate":{},"gradient_norm":{},"tokens_per_s":{},"elapsed":{}}})", step,
                     3 + noise, 1e-3 * noise, 2 * noise, 1e5 * noise, 0.0123 * static_cast<double>(step));
      block += '\n';
      if (block.size() > (1 << 20)) file << block, block.clear();
    }
    file << block;
  }
  const uint64_t memory = peak_resident_bytes();
  const double begin = cpu_seconds();  // other programs may run
  Follower follower(file_);
  follower.update();
  const double seconds = cpu_seconds() - begin;
  std::printf("%.2f s for %.0f MB\n", seconds, static_cast<double>(std::filesystem::file_size(file_)) * 1e-6);
  EXPECT_EQ(follower.data().lines(), 1'000'000u);
  EXPECT_LT(peak_resident_bytes() - memory, 60u << 20);
#ifdef NDEBUG
  EXPECT_LT(seconds, 2);
#endif
}

}  // namespace
}  // namespace quern::dashboard
