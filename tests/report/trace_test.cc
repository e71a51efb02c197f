#include "report/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/files.h"
#include "core/thread_profile.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern::report {
namespace {

const Region kOp("trace op"), kOdd("a \"quoted\\ name\n"), kWait("trace wait");

class TraceTest : public ::testing::Test {
 protected:
  // A step of so many calls; times are microseconds.
  static void step(Profile& profile, size_t thread, uint32_t number, int calls) {
    for (int i = 0; i < calls; ++i) {
      const int64_t begin = 1000 * (number * 1000 + i * 10);
      profile.thread(thread).add({begin, begin + 5000, static_cast<uint32_t>(kOp.id()), i, number, 3}, 5000, 0);
    }
  }
  nlohmann::json read() const { return nlohmann::json::parse(read_file(path(), 1 << 20)); }
  std::filesystem::path path() const { return folder_.path() / "trace.json"; }

  test::TemporaryFolder folder_;
};

TEST_F(TraceTest, HasATrackPerThreadAndEveryCall) {
  Profile profile({.threads = 3, .events = 100});
  step(profile, 0, 1, 2);
  step(profile, 1, 1, 1);
  profile.thread(1).add({1'050'000, 1'060'000, static_cast<uint32_t>(kWait.id()), Timed::kNoLayer, ProfilePlace::kNone,
                         ProfilePlace::kNone},
                        1, 0);
  profile.thread(2).add(
      {1'000'000, 1'100'000, static_cast<uint32_t>(kOdd.id()), Timed::kNoLayer, 1, ProfilePlace::kNone}, 1, 0);
  const TraceInfo info = write_trace(profile, 2, path());
  EXPECT_EQ(info.calls, 5u);
  EXPECT_EQ(info.first_step, 1u);
  EXPECT_EQ(info.last_step, 1u);
  EXPECT_EQ(info.bytes, std::filesystem::file_size(path()));
  std::set<std::string> lanes;
  std::vector<nlohmann::json> calls;
  const nlohmann::json trace = read();
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name") lanes.insert(event.at("args").at("name"));
    if (event.at("ph") == "X") calls.push_back(event);
  }
  EXPECT_EQ(lanes, (std::set<std::string>{"worker 0", "worker 1", "trainer"}));
  ASSERT_EQ(calls.size(), 5u);
  EXPECT_EQ(calls[1],
            nlohmann::json::parse(R"({"ph": "X", "pid": 1, "tid": 0, "ts": 10.0, "dur": 5.0, "name": "trace op",
                                                "args": {"step": 1, "micro_batch": 3, "layer": 1}})"));
  EXPECT_EQ(calls[3].at("name"), "trace wait");
  EXPECT_TRUE(calls[3].at("args").empty());
  EXPECT_EQ(calls[4].at("name"), "a \"quoted\\ name\n");
}

// One thread remembers more steps than the other; a step that is only half there would mislead.
TEST_F(TraceTest, ContainsTheLastCompleteSteps) {
  Profile profile({.threads = 2, .events = 10});
  for (uint32_t number = 1; number <= 9; ++number) {
    step(profile, 0, number, 4);  // 10 calls: steps 8 and 9, and half of step 7
    step(profile, 1, number, 1);  // all of them
  }
  const TraceInfo info = write_trace(profile, 2, path());
  EXPECT_EQ(info.first_step, 8u);
  EXPECT_EQ(info.last_step, 9u);
  EXPECT_EQ(info.calls, 10u);
  EXPECT_EQ(read().at("traceEvents").at(1).at("ts"), 0.0);
}

TEST_F(TraceTest, ContainsTheEndOfATooLongStep) {
  Profile profile({.threads = 1, .events = 3});
  EXPECT_EQ(write_trace(profile, 1, path()).calls, 0u);
  step(profile, 0, 1, 7);  // more than there is room for
  const TraceInfo info = write_trace(profile, 1, path());
  EXPECT_FALSE(info.complete);
  EXPECT_EQ(info.calls, 3u);
  EXPECT_EQ(info.first_step, 1u);
  EXPECT_EQ(read().at("traceEvents").size(), 5u);
}

TEST_F(TraceTest, UnwritablePathIsAnErrorAndLeavesNothing) {
  const auto complains = [](const std::filesystem::path& path) {
    return test::message_of([&] { check_trace_path(path); });
  };
  EXPECT_NE(complains(folder_.path()).find("found a folder"), std::string::npos);
  EXPECT_NE(complains(folder_.path() / "none" / "trace.json").find("none/trace.json: cannot create"),
            std::string::npos);
  check_trace_path(path());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace quern::report
