// What holds for every game.
#include "games/game.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tests/games/games_support.h"
#include "tests/support/message.h"

namespace quern::games {
namespace {

class EveryGame : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Game> game_ = make_game(GetParam());
  const GameSpec& spec() const { return game_->spec(); }
  unsigned games() const { return spec().name == "chess" ? 40 : 400; }
};

TEST_P(EveryGame, HasItsNameAndUsefulSizes) {
  EXPECT_EQ(spec().name, GetParam());
  EXPECT_LE(spec().actions, kMaxActions);
  EXPECT_GT(spec().planes * spec().squares() * spec().max_moves, 0u);
  const auto start = game_->start();
  EXPECT_EQ(start->player(), 0);
  EXPECT_EQ(start->moves_played(), 0u);
  EXPECT_FALSE(start->over());
}

TEST_P(EveryGame, EndsWithinItsLimitAndHasMovesUntilThen) {
  for (unsigned seed = 0; seed < games(); ++seed) {
    size_t moves = 0;
    visit_random_game(*game_, seed, [&](const Position& position) {
      ASSERT_EQ(position.moves_played(), moves);
      ASSERT_EQ(position.player(), static_cast<int>(moves % 2));
      ASSERT_EQ(legal(position).empty(), position.over());
      ++moves;
    });
    ASSERT_LE(moves - 1, spec().max_moves);
  }
}

TEST_P(EveryGame, KnowsWhichMovesEndIt) {
  size_t ends = 0;
  for (unsigned seed = 0; seed < games() / 4; ++seed) {
    visit_random_game(*game_, seed, [&](const Position& position) {
      for (const Action action : legal(position)) {
        const auto next = position.clone();
        next->play(action);
        const std::optional<Outcome> result = position.result_after(action);
        ASSERT_EQ(result.has_value(), next->over());
        if (!result) continue;
        ASSERT_EQ(*result, flipped(next->outcome()));
        ++ends;
      }
    });
  }
  EXPECT_GT(ends, games() / 4);
}

TEST_P(EveryGame, LegalActionsAscendBelowTheLimit) {
  visit_random_game(*game_, 1, [&](const Position& position) {
    const std::vector<Action> actions = legal(position);
    ASSERT_TRUE(std::ranges::is_sorted(actions, std::less_equal<>()) || actions.empty());
    ASSERT_EQ(std::set<Action>(actions.begin(), actions.end()).size(), actions.size());
    for (const Action action : actions) ASSERT_LT(action, spec().actions);
  });
}

TEST_P(EveryGame, PlanesAreNumbersFromZeroToOneAndNoneIsLeftOut) {
  visit_random_game(*game_, 2, [&](const Position& position) {
    for (const float value : planes(*game_, position)) ASSERT_TRUE(value >= 0 && value <= 1) << value;
  });
}

TEST_P(EveryGame, ActionsHaveDifferentTextsThatAreReadBack) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    visit_random_game(*game_, seed, [&](const Position& position) {
      for (const Action action : legal(position)) {
        ASSERT_EQ(game_->parse_action(position, game_->action_text(position, action)), action);
      }
    });
  }
}

TEST_P(EveryGame, PositionsHaveTextsThatAreReadBack) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    visit_random_game(*game_, seed, [&](const Position& position) {
      const std::string text = game_->position_text(position);
      const auto read = game_->parse_position(text);
      ASSERT_EQ(game_->position_text(*read), text);
      ASSERT_EQ(read->player(), position.player());
      ASSERT_EQ(game_->draw(*read), game_->draw(position));
      if (!position.over()) {
        ASSERT_EQ(legal(*read), legal(position)) << text;
      }
    });
  }
}

TEST_P(EveryGame, ClonesAreIndependent) {
  std::mt19937 generator(3);
  for (unsigned seed = 0; seed < games() / 10; ++seed) {
    const auto position = game_->start();
    while (!position->over()) {
      const uint64_t hash = position->hash();
      const std::vector<float> before = planes(*game_, *position);
      const auto clone = position->clone();
      ASSERT_EQ(clone->hash(), hash);
      ASSERT_EQ(planes(*game_, *clone), before);
      const Action action = random_action(*position, generator);
      clone->play(action);
      ASSERT_EQ(position->hash(), hash);
      ASSERT_EQ(planes(*game_, *position), before);
      position->play(action);
      ASSERT_EQ(position->hash(), clone->hash());
      ASSERT_EQ(planes(*game_, *position), planes(*game_, *clone));
      ASSERT_EQ(legal(*position), legal(*clone));
    }
  }
}

// Over many random games: the same hash if and only if planes and legal moves are the same.
TEST_P(EveryGame, HashesAreEqualForEqualPlanesAndMovesOnly) {
  std::unordered_map<uint64_t, std::pair<std::vector<float>, std::vector<Action>>> seen;
  std::set<std::pair<std::vector<float>, std::vector<Action>>> different;
  for (unsigned seed = 0; seed < (spec().name == "chess" ? 4 : 100); ++seed) {
    visit_random_game(*game_, seed, [&](const Position& position) {
      const std::pair contents(planes(*game_, position), legal(position));
      const auto [found, is_new] = seen.emplace(position.hash(), contents);
      ASSERT_EQ(found->second, contents);
      different.insert(contents);
    });
  }
  EXPECT_EQ(seen.size(), different.size());
}

// The planes of `position` with every square moved.
std::vector<float> moved_planes(const Game& game, const Position& position, const Symmetry& symmetry) {
  const std::vector<float> from = planes(game, position);
  std::vector<float> to(from.size());
  const size_t squares = game.spec().squares();
  for (size_t i = 0; i < from.size(); ++i) to[i / squares * squares + symmetry.squares[i % squares]] = from[i];
  return to;
}

std::vector<Action> moved_actions(const Position& position, const Symmetry& symmetry) {
  std::vector<Action> actions = legal(position);
  for (Action& action : actions) action = symmetry.actions[action];
  std::ranges::sort(actions);
  return actions;
}

TEST_P(EveryGame, SymmetriesCommuteWithPlay) {
  std::mt19937 generator(5);
  for (const Symmetry& symmetry : game_->symmetries()) {
    for (unsigned round = 0; round < 50; ++round) {
      const auto position = game_->start(), image = game_->start();
      while (!position->over()) {
        ASSERT_EQ(planes(*game_, *image), moved_planes(*game_, *position, symmetry));
        ASSERT_EQ(legal(*image), moved_actions(*position, symmetry));
        const Action action = random_action(*position, generator);
        position->play(action);
        image->play(symmetry.actions[action]);
      }
      ASSERT_TRUE(image->over());
      ASSERT_EQ(image->outcome(), position->outcome());
    }
  }
}

TEST_P(EveryGame, SymmetriesAreDifferentPermutationsWithoutTheIdentity) {
  std::set<std::vector<uint16_t>> different;
  for (const Symmetry& symmetry : game_->symmetries()) {
    std::vector<uint16_t> squares = symmetry.squares, actions = symmetry.actions;
    EXPECT_FALSE(std::ranges::is_sorted(squares));
    different.insert(squares);
    std::ranges::sort(squares);
    std::ranges::sort(actions);
    ASSERT_EQ(squares.size(), spec().squares());
    ASSERT_EQ(actions.size(), spec().actions);
    for (size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], i);
    for (size_t i = 0; i < actions.size(); ++i) EXPECT_EQ(actions[i], i);
  }
  EXPECT_EQ(different.size(), game_->symmetries().size());
}

INSTANTIATE_TEST_SUITE_P(Games, EveryGame, testing::Values("tictactoe", "connect4", "chess"),
                         [](const auto& info) { return std::string(info.param); });

TEST(MakeGame, UnknownNamesAreErrors) {
  EXPECT_EQ(test::message_of([] { make_game("go"); }),
            "[games] name: expected tictactoe, connect4 or chess, found 'go'");
}

}  // namespace
}  // namespace quern::games
