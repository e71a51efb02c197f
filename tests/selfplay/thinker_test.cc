// Thinking about one position, against the search it wraps.
#include "selfplay/thinker.h"

#include <algorithm>

#include "fake_models.h"
#include "selfplay/chosen_moves.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

const TicTacToe kGame;

TEST(Thinker, ChoosesAsTheSearchAlone) {
  const auto model = std::make_shared<HashedModel>(kGame, 3);
  Thinker thinker(kGame.spec(), model, {});
  std::vector<std::unique_ptr<games::Position>> positions;
  for (games::Action action = 0; action < 9; ++action) {
    positions.push_back(kGame.start());
    positions.back()->play(action);
  }
  const std::vector<ChosenMove> chosen = choose_moves(kGame.spec(), *model, positions, {.simulations = 60});
  for (size_t i = 0; i < positions.size(); ++i) {
    const Search& search = thinker.think(*positions[i], 60);
    EXPECT_EQ(search.root_visits(), 60u);
    EXPECT_EQ(search.line(1).at(0), chosen[i].searched);
    EXPECT_EQ(thinker.think(*positions[i], 0).line(1).at(0), chosen[i].policy);
    EXPECT_NEAR(thinker.think(*positions[i], 0).root_value().score(), chosen[i].value.score(), 1e-6);
  }
}

TEST(Thinker, StopsWhenItIsTold) {
  Thinker thinker(kGame.spec(), std::make_shared<UniformModel>(kGame), {});
  uint32_t asked = 0;
  const Search& search = thinker.think(*kGame.start(), 1'000, [&](const Search&) { return ++asked == 5; });
  EXPECT_EQ(search.root_visits(), 4u);  // the first evaluation is that of the position
  asked = 4;
  EXPECT_EQ(thinker.think(*kGame.start(), 1'000, [&](const Search&) { return ++asked == 5; }).line(9).size(), 1u);
}

TEST(Thinker, RanksTheMoves) {
  Thinker thinker(kGame.spec(), std::make_shared<HashedModel>(kGame, 4), {});
  const Search& search = thinker.think(*kGame.start(), 100);
  const std::vector<RankedMove> moves = ranked_moves(search);
  ASSERT_EQ(moves.size(), 9u);
  EXPECT_EQ(moves[0].action, search.line(1).at(0));
  double sum = 0, score = search.root_value().score() * 101;
  for (size_t i = 0; i < moves.size(); ++i) {
    EXPECT_LE(moves[i].share, moves[i == 0 ? 0 : i - 1].share);
    EXPECT_NEAR(moves[i].value.win + moves[i].value.draw + moves[i].value.loss, 1, 1e-5);
    sum += moves[i].share;
    score -= moves[i].value.score() * moves[i].share * 100;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(score, thinker.think(*kGame.start(), 0).root_value().score(), 1e-4);  // what is left is the evaluation
}

TEST(Thinker, GoesOnWithWhatItFound) {
  Thinker thinker(kGame.spec(), std::make_shared<HashedModel>(kGame, 5), {});
  thinker.set(*kGame.start());
  thinker.search_more(30);
  const Search& search = thinker.search_more(20);
  EXPECT_EQ(search.root_visits(), 50u);
  const games::Action best = search.line(1).at(0);
  const uint32_t visits = std::ranges::find(search.root_edges(), best, &Edge::action)->visits;
  thinker.advance(best);
  EXPECT_EQ(thinker.search().root_visits(), visits - 1);  // the first one was its own evaluation
  EXPECT_EQ(thinker.search().position().moves_played(), 1u);
}

TEST(Search, TheLineToTheEndIsTheShortestProvenWin) {
  Thinker thinker(kGame.spec(), std::make_shared<HashedModel>(kGame, 6), {});
  const auto line_after = [&](std::initializer_list<games::Action> moves) {
    const std::unique_ptr<games::Position> position = kGame.start();
    for (const games::Action action : moves) position->play(action);
    return thinker.think(*position, 1'000).line_to_end();
  };
  EXPECT_EQ(line_after({0, 3, 1, 4}), std::vector<games::Action>{2});  // wins at once, if later in other ways, too
  // 8 has to be taken, then there are two threats at once.
  EXPECT_EQ(line_after({0, 1, 4}).size(), 4u);
  EXPECT_EQ(line_after({0, 1}).size(), 5u);
  EXPECT_TRUE(line_after({4, 0}).empty());  // a draw
  EXPECT_TRUE(Search({}).line_to_end().empty());
}

TEST(Search, TheLineIsLegalAndEndsWithTheGame) {
  Thinker thinker(kGame.spec(), std::make_shared<PerfectModel>(kGame), {});
  const std::unique_ptr<games::Position> position = kGame.start();
  for (const games::Action action : std::initializer_list<games::Action>{0, 3, 1, 4})
    position->play(action);  // wins at once with 2
  const Search& search = thinker.think(*position, 200);
  EXPECT_EQ(search.line(9), std::vector<games::Action>{2});
  const Search& long_search = thinker.think(*kGame.start(), 3'000);
  const std::vector<games::Action> line = long_search.line(9);
  EXPECT_GT(line.size(), 3u);
  const std::unique_ptr<games::Position> replay = kGame.start();
  std::vector<games::Action> legal;
  for (const games::Action action : line) {
    replay->legal_actions(legal);
    ASSERT_TRUE(std::ranges::binary_search(legal, action));
    replay->play(action);
  }
  EXPECT_EQ(long_search.line(2), (std::vector<games::Action>{line[0], line[1]}));
  EXPECT_TRUE(Search({}).line(3).empty());
}

}  // namespace
}  // namespace quern::selfplay::test
