// Training rows under the symmetries of a game.
#include "selfplay/symmetry.h"

#include "searching.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

// A symmetric row is what the symmetric game would have given: its planes are those of the position after the mapped
// moves.
template <typename Game>
void expect_rows_of_mapped_moves(const Game& game, const std::vector<games::Action>& moves) {
  const games::GameSpec& spec = game.spec();
  const size_t size = spec.planes * spec.squares();
  const std::unique_ptr<games::Position> position = game.start();
  for (const games::Action move : moves) position->play(move);
  std::vector<float> planes(size), policy(spec.actions), planes_out(size), policy_out(spec.actions), expected(size);
  position->write_planes(planes);
  for (size_t action = 0; action < spec.actions; ++action) policy[action] = static_cast<float>(action);
  for (size_t s = 0; s <= game.symmetries().size(); ++s) {
    const auto mapped = [&](games::Action action) {
      return s == 0 ? action : game.symmetries()[s - 1].actions[action];
    };
    const std::unique_ptr<games::Position> same = game.start();
    for (const games::Action move : moves) same->play(mapped(move));
    same->write_planes(expected);
    apply_symmetry(game, s, planes, policy, planes_out, policy_out);
    EXPECT_TRUE(quern::test::same_bits(expected, planes_out)) << s;
    for (games::Action action = 0; action < spec.actions; ++action) EXPECT_EQ(policy_out[mapped(action)], action);
  }
}

TEST(Symmetry, ARowIsThatOfTheMappedGame) {
  expect_rows_of_mapped_moves(TicTacToe(), {0, 1, 5, 6});
  expect_rows_of_mapped_moves(Four(), {0, 1, 1, 5, 5, 5, 2});
}

TEST(Symmetry, IsDrawnEvenlyFromSeedStepAndSample) {
  const TicTacToe game;
  std::vector<int> counts(8);
  for (uint32_t step = 0; step < 80; ++step) {
    for (uint32_t sample = 0; sample < 100; ++sample) ++counts[draw_symmetry(game, 1, step, sample)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  size_t same = 0;
  for (uint32_t i = 0; i < 800; ++i) {
    EXPECT_EQ(draw_symmetry(game, 1, i, 7), draw_symmetry(game, 1, i, 7));
    same += draw_symmetry(game, 1, i, 7) == draw_symmetry(game, 2, i, 7) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(same), 100, 50);
}

}  // namespace
}  // namespace quern::selfplay::test
