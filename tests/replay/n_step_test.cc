// n-step returns against a naive twin that knows the whole episode.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "replay/n_step.h"
#include "tests/replay/episode_rows.h"
#include "tests/support/message.h"

namespace quern::replay {
namespace {

using test::Actor;
using test::EpisodeRows;

constexpr size_t kReward = 3, kStepColumn = 2;

struct Drawn {
  explicit Drawn(size_t count)
      : rows(count), after(count), returns(count), discounts(count), steps(count), ids(count), next_ids(count) {}

  EpisodeRows rows, after;
  std::vector<float> returns, discounts;
  std::vector<uint64_t> steps, ids, next_ids;
};

enum class Follows { kNext, kLast };

Drawn draw(const ReplayBuffer& buffer, const NStepRequest& request, Follows follows, uint64_t call = 0) {
  Drawn drawn(request.starts.rows);
  const std::vector<std::byte*> columns = drawn.rows.outputs(), after = drawn.after.outputs();
  NStepArrays out{.columns = columns,
                  .next = {},
                  .last = {},
                  .returns = drawn.returns.data(),
                  .discounts = drawn.discounts.data(),
                  .steps = drawn.steps.data(),
                  .ids = drawn.ids.data(),
                  .next_ids = drawn.next_ids.data()};
  (follows == Follows::kNext ? out.next : out.last) = after;
  admit_n_step(buffer, request, out);
  sample_n_step(buffer, request, out, 1, call);
  return drawn;
}

// One actor's `rows` rows. Every fifth time it leaves its episode in the middle.
void play(ReplayBuffer& buffer, uint64_t actors, int rows) {
  std::vector<Actor> all;
  std::vector<Streams> streams(actors, Streams(1));
  for (uint64_t a = 0; a < actors; ++a) all.emplace_back(a);
  EpisodeRows row;
  for (int i = 0; i < rows; ++i) {
    for (uint64_t a = 0; a < actors; ++a) {
      all[a].fill(row, 1);
      buffer.add(row.inputs(), 1, {}, {}, streams[a].get());
    }
  }
}

// What the table in n_step.h says of row `i`, from the episode's length.
void expect_right(const Drawn& drawn, size_t i, size_t n, double gamma, Follows follows) {
  const uint64_t actor = drawn.rows.actor[i], episode = drawn.rows.episode[i], step = drawn.rows.step[i];
  const uint64_t left = test::length_of(actor, episode) - step;
  const bool ends = left <= n;
  const bool cut = test::is_truncated(actor, episode);
  uint64_t steps = ends ? left : n;
  if (ends && cut && follows == Follows::kNext) steps = left - 1;
  ASSERT_EQ(drawn.steps[i], steps);
  double sum = 0, discount = 1;
  for (uint64_t k = 0; k < steps; ++k) {
    sum += discount * test::reward_of(actor, episode, step + k);
    discount *= gamma;
  }
  ASSERT_EQ(drawn.returns[i], static_cast<float>(sum));
  ASSERT_EQ(drawn.discounts[i], ends && !cut ? 0.0f : static_cast<float>(discount));
  const uint64_t after = follows == Follows::kLast || (ends && !cut) ? step + steps - 1 : step + steps;
  ASSERT_EQ(drawn.after.actor[i], actor);
  ASSERT_EQ(drawn.after.episode[i], episode);
  ASSERT_EQ(drawn.after.step[i], after);
}

class NStepTest : public testing::TestWithParam<Follows> {};

TEST_P(NStepTest, MatchesTheDefinition) {
  ReplayBuffer buffer = ReplayBuffer::create(test::episode_schema(), test::episode_options(900));
  play(buffer, 5, 400);
  for (const size_t n : {1, 3, 10, 30}) {
    const NStepRequest request{.starts = {.rows = 4000}, .n = n, .gamma = 0.97, .reward = kReward};
    const Drawn drawn = draw(buffer, request, GetParam());
    for (size_t i = 0; i < 4000; ++i) expect_right(drawn, i, n, 0.97, GetParam());
  }
}

// All rows, but for the last of cut-off episodes (their observation is the last) and those of unfinished episodes.
TEST_P(NStepTest, DrawsEveryRowWithAReturn) {
  ReplayBuffer buffer = ReplayBuffer::create(test::episode_schema(), test::episode_options(120));
  play(buffer, 2, 100);
  constexpr uint64_t kSteps = 3;
  std::set<uint64_t> expected;
  EpisodeRows row;
  for (uint64_t id = buffer.ring().window().begin; id < buffer.ring().window().end; ++id) {
    ASSERT_TRUE(buffer.read(id, row.outputs()));
    const uint64_t left = test::length_of(row.actor[0], row.episode[0]) - row.step[0];
    const uint64_t added = (buffer.ring().window().end - 1 - id) / 2;  // later rows of this actor
    if (row.truncated[0] != 0 && GetParam() == Follows::kNext) continue;
    if (left <= kSteps ? added + 1 >= left : added >= (GetParam() == Follows::kNext ? kSteps : kSteps - 1)) {
      expected.insert(id);
    }
  }
  const NStepRequest request{.starts = {.rows = 20000}, .n = kSteps, .gamma = 1, .reward = kReward};
  const Drawn drawn = draw(buffer, request, GetParam());
  EXPECT_EQ(std::set<uint64_t>(drawn.ids.begin(), drawn.ids.end()), expected);
}

INSTANTIATE_TEST_SUITE_P(, NStepTest, testing::Values(Follows::kNext, Follows::kLast),
                         [](const auto& info) { return info.param == Follows::kNext ? "NextRow" : "LastRow"; });

TEST(NStep, WithoutReplacementDrawsNoRowTwice) {
  ReplayBuffer buffer = ReplayBuffer::create(test::episode_schema(), test::episode_options(500));
  play(buffer, 1, 500);
  const NStepRequest request{
      .starts = {.rows = 300, .rule = Rule::kWithoutReplacement}, .n = 2, .gamma = 0.9, .reward = kReward};
  const Drawn drawn = draw(buffer, request, Follows::kNext);
  EXPECT_EQ(std::set<uint64_t>(drawn.ids.begin(), drawn.ids.end()).size(), 300u);
}

TEST(NStep, ErrorsSayWhatIsExpected) {
  ReplayBuffer buffer = ReplayBuffer::create(test::episode_schema(), test::episode_options(50));
  play(buffer, 1, 50);
  const auto message = [&](const NStepRequest& request) {
    return test::message_of([&] { draw(buffer, request, Follows::kNext); });
  };
  EXPECT_EQ(message({.starts = {.rows = 1}, .n = 0, .gamma = 1, .reward = kReward}),
            "[replay] sample_n_step: n: expected 1 to 50 steps, found 0");
  EXPECT_EQ(message({.starts = {.rows = 1}, .n = 1, .gamma = 1.5, .reward = kReward}),
            "[replay] sample_n_step: gamma: expected 0 to 1, found 1.5");
  EXPECT_EQ(message({.starts = {.rows = 1}, .n = 1, .gamma = 1, .reward = 99}),
            "[replay] sample_n_step: reward: expected a column below 6, found 99");
  EXPECT_EQ(message({.starts = {.rows = 1}, .n = 1, .gamma = NAN, .reward = kStepColumn}),
            "[replay] sample_n_step: gamma: expected 0 to 1, found nan");
}

}  // namespace
}  // namespace quern::replay
