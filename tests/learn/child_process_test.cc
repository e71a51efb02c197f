#include "learn/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "learn/actor_report.h"
#include "support/message.h"
#include "support/watchdog.h"

namespace quern::learn {
namespace {

ChildProcess shell(const std::string& script) { return ChildProcess({"/bin/sh", "-c", script}); }

std::string end_of(ChildProcess& process) {
  const test::Watchdog watchdog("a child process");
  for (;;) {
    if (const auto end = process.end()) return *end;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ChildProcess, ItsLinesAreRead) {
  ChildProcess process = shell("echo one; echo two; printf three");
  EXPECT_EQ(end_of(process), "with exit code 0");
  std::vector<std::string> lines;
  process.read_lines([&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));  // a line that is not complete does not count
}

TEST(ChildProcess, ItsEndIsToldApart) {
  ChildProcess failed = shell("exit 3");
  EXPECT_EQ(end_of(failed), "with exit code 3");
  ChildProcess killed = shell("kill -9 $$");
  EXPECT_EQ(end_of(killed), "by signal 9");
  EXPECT_EQ(killed.end(), "by signal 9");
}

TEST(ChildProcess, ItEndsWithItsStandardInput) {
  ChildProcess process = shell("read line; exit 7");
  EXPECT_EQ(process.end(), std::nullopt);
  ChildProcess moved = std::move(process);
  moved.ask_to_end();
  EXPECT_EQ(end_of(moved), "with exit code 7");
}

// Another child that is started meanwhile must not hold the input open.
TEST(ChildProcess, ChildrenDoNotInheritThePipesOfOthers) {
  ChildProcess first = shell("read line; exit 1");
  ChildProcess second = shell("read line; exit 2");
  first.ask_to_end();
  EXPECT_EQ(end_of(first), "with exit code 1");
  EXPECT_EQ(second.end(), std::nullopt);
}

TEST(ChildProcess, AReplacedProcessIsEnded) {
  ChildProcess process = shell("cat > /dev/null");
  const pid_t first = process.pid();
  process = shell("exit 0");
  EXPECT_EQ(::kill(first, 0), -1);
  EXPECT_EQ(end_of(process), "with exit code 0");
}

TEST(ChildProcess, AProgramThatDoesNotExistIsAnError) {
  const std::string error = test::message_of([] { ChildProcess({"/nowhere/quern"}); });
  EXPECT_NE(error.find("/nowhere/quern: cannot be started: No such file"), std::string::npos) << error;
}

TEST(ActorReport, RoundTrips) {
  const Totals totals{.games = 1, .moves = 2, .rows = 3, .evaluations = uint64_t{1} << 40, .first_wins = 5, .draws = 6};
  const auto parsed = parse_actor_report(actor_report(totals));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->games, 1u);
  EXPECT_EQ(parsed->evaluations, uint64_t{1} << 40);
  EXPECT_EQ(parsed->draws, 6u);
}

TEST(ActorReport, OtherTextIsNone) {
  for (const char* text :
       {"", "played", "played 1 2 3 4 5", "played a b c d e f", "warning: 1 2 3 4 5 6", "1 2 3 4 5 6"}) {
    EXPECT_FALSE(parse_actor_report(text)) << text;
  }
}

}  // namespace
}  // namespace quern::learn
