#include "report/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::report {
namespace {

using Json = nlohmann::json;

class MetricsTest : public ::testing::Test {
 protected:
  static train::StepReport step(uint64_t number, bool finite = true) {
    return {.step = number,
            .loss = 3.0 / static_cast<double>(number),
            .rate = 1e-3,
            .gradient_norm = finite ? 1.5 : INFINITY,
            .finite = finite,
            .tokens = 1000,
            .seconds = 0.5};
  }

  // Steps first ... last, with a validation at every fourth, as one process of a run would do them.
  void run(uint64_t first, uint64_t last, uint64_t interval = 1, bool ends = false) {
    Metrics metrics(file_, interval);
    metrics.on_start({.first_step = first, .steps = kSteps, .floor = {}});
    for (uint64_t i = first; i <= last; ++i) {
      metrics.on_step(step(i));
      if (i % 4 == 0) metrics.on_validation(i, 2.0);
    }
    if (ends) metrics.on_end({});
  }
  std::string text() const { return read_file(file_, 1 << 20); }
  std::vector<Json> lines() const {
    std::vector<Json> lines;
    std::istringstream stream(text());
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  static constexpr uint64_t kSteps = 100;

  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "metrics.jsonl";
};

TEST_F(MetricsTest, HealthRoundTrips) {
  Metrics metrics(file_, 1);
  metrics.on_start({.first_step = 1, .steps = kSteps, .floor = {}});
  const train::TensorHealth tensors[] = {
      {.name = "wte.weight", .norm = 1.0 / 3, .mean = -1e-300, .largest = 2, .zeros = 0.25, .update_ratio = 1e-3},
      {.name = "h.0.ln_1.bias", .norm = NAN, .mean = INFINITY, .largest = -INFINITY, .zeros = 0, .update_ratio = 1e22}};
  metrics.on_health({.step = 7, .norm = 1, .tensors = tensors});
  const Json expected = {
      {"step", 7},
      {"health",
       {{"wte.weight", {{"norm", 1.0 / 3}, {"mean", -1e-300}, {"largest", 2}, {"zeros", 0.25}, {"update_ratio", 1e-3}}},
        {"h.0.ln_1.bias",
         {{"norm", nullptr}, {"mean", nullptr}, {"largest", nullptr}, {"zeros", 0}, {"update_ratio", 1e22}}}}}};
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_EQ(lines()[0], expected);
}

TEST_F(MetricsTest, WritesALinePerLoggedStepAndValidation) {
  run(1, 8, 3);
  const std::vector<Json> found = lines();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], Json::parse(R"({"step":3,"loss":1.0,"rate":0.001,"gradient_norm":1.5,"tokens_per_s":2000.0,
                                      "elapsed":1.5})"));
  EXPECT_EQ(found[1], Json::parse(R"({"step":4,"validation_loss":2.0})"));
  EXPECT_EQ(found[2]["step"], 6);
  EXPECT_EQ(found[3]["step"], 8);
}

TEST_F(MetricsTest, TheLastStepIsLoggedOnce) {
  run(99, 100, 7);
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[0]["step"], 100);
  run(1, 8, 3, true);  // stopped before the last
  ASSERT_EQ(lines().size(), 5u);
  EXPECT_EQ(lines()[4]["step"], 8);
  EXPECT_EQ(lines()[4]["elapsed"], 4.0);
  run(1, 6, 3, true);
  EXPECT_EQ(lines().size(), 3u);
  run(7, 6, 3, true);  // nothing to do
  EXPECT_EQ(lines().size(), 3u);
}

TEST_F(MetricsTest, ElapsedTimeContinuesAfterAResume) {
  run(1, 5, 3, true);
  run(6, 7, 3, true);
  EXPECT_EQ(lines().back()["step"], 7);
  EXPECT_EQ(lines().back()["elapsed"], 3.5);
}

TEST_F(MetricsTest, ChangedSettingsChangeTheInterval) {
  Metrics metrics(file_, 4);
  metrics.on_start({.first_step = 1, .steps = 20, .floor = {}});
  train::RunConfig config;
  config.log.interval = 4;
  config.train.steps = 6;
  metrics.on_settings({.first_step = 1, .config = config});
  for (uint64_t i = 1; i <= 7; ++i) metrics.on_step(step(i));
  config.log.interval = 5;
  config.train.steps = 20;
  metrics.on_settings({.first_step = 8, .config = config});
  for (uint64_t i = 8; i <= 12; ++i) metrics.on_step(step(i));
  std::vector<uint64_t> steps;
  for (const Json& line : lines()) steps.push_back(line["step"].get<uint64_t>());
  EXPECT_EQ(steps, (std::vector<uint64_t>{4, 6, 7, 10}));  // 7: the last one with the previous settings
}

TEST_F(MetricsTest, MemoryIsThatOfTheStep) {
  Metrics metrics(file_, 1);
  metrics.on_start({.first_step = 1, .steps = 20, .floor = {}});
  train::StepReport report = step(1);
  report.memory = train::MemoryUse{.weights = 1,
                                   .gradient = 2,
                                   .moments = 3,
                                   .batches = 4,
                                   .arena = 5,
                                   .pool = 6,
                                   .planned = 7,
                                   .resident = 8,
                                   .peak = 9};
  metrics.on_step(report);
  EXPECT_EQ(lines()[0]["memory"], Json::parse(R"({"weights":1,"gradient":2,"moments":3,"batches":4,"arena":5,"pool":6,
                                                  "planned":7,"resident":8,"peak":9})"));
}

TEST_F(MetricsTest, WarningsHaveTheirStep) {
  Metrics metrics(file_, 10);
  metrics.on_warning("before the file \xff");  // an old checkpoint was taken
  metrics.on_start({.first_step = 6, .steps = 20, .floor = {}});
  metrics.on_step(step(6));
  metrics.on_warning("after a step");
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[0], Json::parse("{\"step\":5,\"warning\":\"before the file \ufffd\"}"));
  EXPECT_EQ(lines()[1], Json::parse(R"({"step":6,"warning":"after a step"})"));
}

TEST_F(MetricsTest, SkippedUpdateIsAlwaysLogged) {
  Metrics metrics(file_, 10);
  metrics.on_start({.first_step = 1, .steps = 20, .floor = {}});
  metrics.on_step(step(7, false));
  const std::vector<Json> found = lines();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["skipped"], true);
  EXPECT_TRUE(found[0]["gradient_norm"].is_null());  // JSON has no infinity
}

// Its warnings follow it, before the step is over: a run that is resumed before that step meets them again.
TEST_F(MetricsTest, HealthWarningsHaveTheirStep) {
  for (int kill = 0; kill < 3; ++kill) {
    Metrics metrics(file_, 1);
    metrics.on_start({.first_step = 6, .steps = 20, .floor = {}});
    metrics.on_health({.step = 6, .norm = 1, .tensors = {}});
    metrics.on_warning("step 6: a dead layer");
  }
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1], Json::parse(R"({"step":6,"warning":"step 6: a dead layer"})"));
}

// A run that went back to step 40 and was killed before its next checkpoint starts from step 40 again, as if the
// incident had not been, and meets it again: each kill left one more line about it.
TEST_F(MetricsTest, RepeatedIncidentIsLoggedOnce) {
  const train::IncidentReport earlier{.step = 23, .number = 1, .action = train::Policy::kSkip, .resumed_after = 23};
  const train::IncidentReport incident{
      .step = 42, .number = 2, .action = train::Policy::kRollback, .resumed_after = 40};
  const auto logged_incidents = [this] {
    std::vector<uint64_t> numbers;
    for (const Json& line : lines()) {
      if (line.contains("incident")) numbers.push_back(line["incident"]["number"].get<uint64_t>());
    }
    return numbers;
  };
  {
    Metrics metrics(file_, 1);
    metrics.on_start({.first_step = 1, .steps = kSteps, .floor = {}});
    metrics.on_incident(earlier);
  }
  for (int kill = 0; kill < 3; ++kill) {
    Metrics metrics(file_, 1);
    metrics.on_start({.first_step = 41, .steps = kSteps, .incidents = 1, .floor = {}});
    EXPECT_EQ(logged_incidents(), (std::vector<uint64_t>{1})) << "after " << kill << " kills";
    metrics.on_step(step(41));
    metrics.on_incident(incident);
    EXPECT_EQ(logged_incidents(), (std::vector<uint64_t>{1, 2}));
  }
  // A checkpoint from after it knows it, though it may be of an earlier step.
  Metrics metrics(file_, 1);
  metrics.on_start({.first_step = 42, .steps = kSteps, .incidents = 2, .floor = {}});
  EXPECT_EQ(logged_incidents(), (std::vector<uint64_t>{1, 2}));
}

// A run that stopped at an incident and is resumed repeats that step.
TEST_F(MetricsTest, IncidentIsReplacedByTheNextAttempt) {
  for (const train::Policy policy : {train::Policy::kStop, train::Policy::kStop, train::Policy::kSkip}) {
    Metrics metrics(file_, 1);
    metrics.on_start({.first_step = 42, .steps = kSteps, .floor = {}});
    const bool skips = policy == train::Policy::kSkip;
    metrics.on_incident({.step = 42, .number = 1, .action = policy, .resumed_after = skips ? 42u : 41u});
    ASSERT_EQ(lines().size(), 1u);
  }
  EXPECT_EQ(lines()[0]["incident"]["action"], "skip");
}

TEST_F(MetricsTest, EveryLineIsWrittenImmediately) {
  Metrics metrics(file_, 1);
  metrics.on_start({.first_step = 1, .steps = 20, .floor = {}});
  metrics.on_step(step(1));
  EXPECT_EQ(lines().size(), 1u);  // a process that is killed now has lost nothing
}

TEST_F(MetricsTest, ResumedRunDropsRepeatedSteps) {
  run(1, 20);
  const std::string whole = text();
  run(9, 20);
  EXPECT_EQ(text(), whole);
  run(21, 20);  // nothing to do
  EXPECT_EQ(text(), whole);
  run(1, 20);
  EXPECT_EQ(text(), whole);
}

// At every byte at which a kill can have cut the file.
TEST_F(MetricsTest, TruncatedLastLineIsDropped) {
  run(1, 6);
  const std::string whole = text();
  run(1, 4);
  const std::string first_four = text();
  for (size_t length = first_four.size(); length <= whole.size(); ++length) {
    write_file(file_, whole.substr(0, length));
    run(5, 6);
    ASSERT_EQ(text(), whole) << length;
  }
}

// A resumed run retains complete lines of earlier steps only, whatever happened to the file.
TEST_F(MetricsTest, SurvivesTenThousandDamagedFiles) {
  run(1, 6);
  test::Mutator mutator({text()},
                        {"{", "}", "[", "\n", "\n\n", "\"step\":", "-1", "1e999", "18446744073709551616", "null",
                         "\xff", "{\"step\":3}", "{\"step\":\"3\"}", "[3]", "\r"},
                        3);
  size_t kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << mutator.next();
    Metrics(file_, 1).on_start({.first_step = 5, .steps = 6, .floor = {}});
    for (const Json& line : lines()) {
      ASSERT_LT(line.at("step").get<uint64_t>(), 5u);
      ++kept;
    }
  }
  EXPECT_GT(kept, 20'000u);
  std::ofstream(file_, std::ios::trunc) << std::string(1'000'000, '[') << "\n"
                                        << std::string(1'000'000, '[') << std::string(1'000'000, ']');
  Metrics(file_, 1).on_start({.first_step = 5, .steps = 6, .floor = {}});
  ASSERT_EQ(lines().size(), 1u);  // the second line has no end
  EXPECT_EQ(lines()[0]["step"], 4);
  EXPECT_EQ(lines()[0]["warning"].get<std::string>().find("dropped 1 damaged line of metrics.jsonl: line 1 was '[["),
            0u);
}

// Resuming in a folder with a config.toml, no checkpoint, and the metrics.jsonl of another program emptied that file.
TEST_F(MetricsTest, NewRunRefusesAFileOfAnotherProgram) {
  for (const char* foreign : {"years of work\n", "{\"epoch\":1}\n", "{\"step\":1,\"loss\":2.5}\n", "[1]\n", "\n\n",
                              "{\"step\":1,\"validation_loss\":2}\nmore\n{\"st"}) {
    write_file(file_, foreign);
    Metrics metrics(file_, 1);
    const std::string message = test::message_of([&] { metrics.on_start({.first_step = 1, .steps = 6, .floor = {}}); });
    EXPECT_NE(message.find("metrics.jsonl:"), std::string::npos) << message;
    EXPECT_NE(message.find("expected a line of this run"), std::string::npos) << message;
    EXPECT_EQ(text(), foreign);
  }
}

TEST_F(MetricsTest, RecognisesEveryKindOfLineItWrites) {
  {
    Metrics metrics(file_, 1);
    metrics.on_start({.first_step = 1, .steps = kSteps, .floor = {}});
    metrics.on_health({.step = 1, .norm = 1, .tensors = {}});
    metrics.on_step(step(1, false));
    metrics.on_validation(1, 2.0);
    metrics.on_warning("beware");
    metrics.on_incident({.step = 2, .number = 1, .action = train::Policy::kSkip, .resumed_after = 2});
  }
  EXPECT_EQ(lines().size(), 5u);
  std::ofstream(file_, std::ios::app) << "{\"step\":2,\"lo";  // cut short by a kill
  Metrics(file_, 1).on_start({.first_step = 1, .steps = kSteps, .floor = {}});
  EXPECT_EQ(text(), "");
}

TEST_F(MetricsTest, FullDiskIsAnError) {
  const int code = test::run_in_child([&] {
    test::limit_file_size(1000);
    try {
      run(1, 100);
    } catch (const Error& error) {
      const std::string message = error.what();
      const bool named = message.find("metrics.jsonl: cannot write") != std::string::npos &&
                         message.find("File too large") != std::string::npos;
      if (!named) std::fprintf(stderr, "%s\n", message.c_str());
      return named ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(MetricsTest, MissingFolderIsAnError) {
  Metrics metrics(folder_ / "none/metrics.jsonl", 1);
  EXPECT_THROW(metrics.on_start({.first_step = 1, .steps = 1, .floor = {}}), Error);
}

}  // namespace
}  // namespace quern::report
