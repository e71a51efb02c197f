// How often models are wrong in tic-tac-toe, against counting by hand.
#include "selfplay/mistakes.h"

#include <algorithm>

#include "core/error.h"
#include "fake_models.h"
#include "games/test_sets.h"
#include "selfplay/move_choice.h"
#include "selfplay/priors.h"
#include "selfplay/search.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

struct Solved {
  std::unique_ptr<games::Game> game = games::make_game("tictactoe");
  games::SolverPool pool{"tictactoe", 2};
  games::SolvedPositions positions{std::move(games::test_sets(*game, 0, 1)[0].positions), pool};
};

std::vector<ChosenMove> choose(const Solved& solved, const Model& model, const ChoiceSettings& settings) {
  return choose_moves(solved.game->spec(), model, solved.positions.positions(), settings);
}

Mistakes mistakes_of(Solved& solved, const Model& model, const ChoiceSettings& settings) {
  return count_mistakes(solved.positions, choose(solved, model, settings));
}

// Knows the best moves too.
class PerfectPlayer : public PerfectModel {
 public:
  using PerfectModel::PerfectModel;
  void evaluate(std::span<const float> planes, std::span<float> logits, std::span<float> outcome) const override {
    PerfectModel::evaluate(planes, logits, outcome);
    std::vector<float> next(18), child(3), unused(9);
    for (size_t action = 0; action < 9; ++action) {
      if (planes[action] != 0 || planes[9 + action] != 0) continue;
      std::copy_n(planes.data() + 9, 9, next.data());
      std::copy_n(planes.data(), 9, next.data() + 9);
      next[9 + action] = 1;
      PerfectModel::evaluate(next, unused, child);
      logits[action] = 3 * (child[2] - child[0]);
    }
  }
};

TEST(Mistakes, APerfectPlayerMakesNone) {
  Solved solved;
  const PerfectPlayer model(*solved.game);
  for (const uint32_t simulations : {0u, 1u, 50u}) {
    const Mistakes found = mistakes_of(solved, model, {.simulations = simulations});
    EXPECT_EQ(found, (Mistakes{.positions = 4520, .policy = 0, .searched = 0, .right_outcomes = 4520}));
  }
}

// The move of the network alone, and its value, from an evaluation of one position.
TEST(Mistakes, AreThoseOfEachPositionAlone) {
  Solved solved;
  const HashedModel model(*solved.game, 3);
  const std::unique_ptr<games::Solver> solver = games::make_solver("tictactoe");
  Mistakes expected{.positions = 4520};
  std::vector<float> planes(18), logits(9), value(3);
  std::vector<games::Action> legal;
  for (const auto& position : solved.positions.positions()) {
    position->write_planes(planes);
    model.evaluate(planes, logits, value);
    position->legal_actions(legal);
    const auto best = std::ranges::max_element(legal, {}, [&](games::Action action) { return logits[action]; });
    const std::vector<games::Outcome> outcomes = solver->action_outcomes(*position);
    const games::Outcome result = *std::ranges::max_element(outcomes);
    expected.policy += outcomes[static_cast<size_t>(best - legal.begin())] < result ? 1 : 0;
    const auto likeliest = std::ranges::max_element(value) - value.begin();
    expected.right_outcomes += likeliest == 2 - static_cast<int>(result) ? 1 : 0;
  }
  expected.searched = expected.policy;  // without simulations
  EXPECT_GT(expected.policy, 1000u);
  EXPECT_EQ(mistakes_of(solved, model, {.simulations = 0}), expected);
  const Mistakes searched = mistakes_of(solved, model, {.simulations = 200});
  EXPECT_EQ(searched.policy, expected.policy);
  EXPECT_LT(searched.searched, expected.policy / 4);
}

TEST(Mistakes, DoNotDependOnThreadsOrBatches) {
  Solved solved;
  const HashedModel model(*solved.game, 4);
  const Mistakes expected = mistakes_of(solved, model, {.simulations = 10, .positions_at_once = 1});
  for (const size_t threads : {1u, 3u}) {
    for (const size_t at_once : {7u, 512u, 10'000u}) {
      const ChoiceSettings settings = {.simulations = 10, .threads = threads, .positions_at_once = at_once};
      EXPECT_EQ(mistakes_of(solved, model, settings), expected) << threads << " " << at_once;
    }
  }
}

TEST(Mistakes, TheSearchIsThatOfThePositionAlone) {
  Solved solved;
  const HashedModel model(*solved.game, 5);
  const std::vector<ChosenMove> chosen = choose(solved, model, {.simulations = 30});
  const std::unique_ptr<Evaluator> evaluator = model.make_evaluator(1);
  for (size_t i = 0; i < chosen.size(); i += 100) {
    Search search({});
    search.reset(*solved.positions.positions()[i]);
    search.begin(30);
    std::vector<float> planes(18), logits(9), value(3), priors;
    while (const games::Position* leaf = search.next_leaf()) {
      leaf->write_planes(planes);
      evaluator->evaluate(1, planes.data(), logits.data(), value.data());
      priors.resize(search.leaf_actions().size());
      write_priors(logits, search.leaf_actions(), priors);
      search.take(priors, read_outcome(value));
    }
    EXPECT_EQ(chosen[i].searched, search.root_edges()[most_visited(search.root_edges())].action) << i;
  }
}

TEST(Mistakes, TheLikeliestOfEqualsIsTheBetterOne) {
  EXPECT_EQ(likeliest({0.4f, 0.4f, 0.2f}), games::Outcome::kWin);
  EXPECT_EQ(likeliest({0.2f, 0.4f, 0.4f}), games::Outcome::kDraw);
  EXPECT_EQ(likeliest({0.2f, 0.3f, 0.5f}), games::Outcome::kLoss);
}

TEST(Mistakes, RefuseBadSettingsAndRethrow) {
  Solved solved;
  EXPECT_THROW(choose(solved, UniformModel(*solved.game), {.threads = 0}), Error);
  EXPECT_THROW(choose(solved, UniformModel(*solved.game), {.positions_at_once = 0}), Error);
  EXPECT_THROW(choose(solved, FailingModel(*solved.game, 900), {}), std::runtime_error);
}

}  // namespace
}  // namespace quern::selfplay::test
