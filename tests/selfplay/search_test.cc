// PUCT search of single positions.
#include "selfplay/search.h"

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "searching.h"
#include "selfplay/dirichlet.h"
#include "selfplay/move_choice.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

const TicTacToe kGame;

// Searches the position after these moves.
Search searched(std::string_view moves, uint32_t simulations, const Model& model, const SearchSettings& settings = {}) {
  Search search(settings);
  search.reset(*kGame.parse_position(moves));
  search.begin(simulations);
  run(search, kGame, model);
  return search;
}

games::Action best(const Search& search) { return search.root_edges()[most_visited(search.root_edges())].action; }

TEST(Search, FindsAWinInOne) {
  const UniformModel model(kGame);
  EXPECT_EQ(best(searched("0314", 100, model)), 2);  // 0 1 . / 3 4 are of the two sides: 2 completes 0 1 2
  EXPECT_EQ(best(searched("304186", 200, model)), 5);
  EXPECT_GT(searched("0314", 400, model).root_value().score(), 0.8f);
}

TEST(Search, AvoidsALossInOne) {
  const UniformModel model(kGame);
  EXPECT_EQ(best(searched("041", 400, model)), 2);   // the opponent has 0 and 1
  EXPECT_EQ(best(searched("4082", 400, model)), 1);  // the opponent has 0 and 2, so that 1 is the only move
}

TEST(Search, FindsAWinInTwo) {
  const UniformModel model(kGame);
  // 0 and 4 against 8 and 1: only 3 and 6 make two threats at once.
  const Search search = searched("0841", 2000, model);
  EXPECT_EQ(perfect_score(*kGame.parse_position("0841")), 1);
  const std::unique_ptr<games::Position> next = kGame.parse_position("0841");
  next->play(best(search));
  EXPECT_EQ(perfect_score(*next), -1);
}

// Every position that is won, and every one with moves that lose: the move of the search is never a mistake.
TEST(Search, MakesNoMistakeInAnyPositionAfterFourMoves) {
  const UniformModel model(kGame);
  std::vector<games::Action> legal;
  size_t tested = 0;
  for (int code = 0; code < 9 * 9 * 9 * 9; code += 7) {
    std::unique_ptr<games::Position> position = kGame.start();
    for (int move = 0, rest = code; move < 4; ++move, rest /= 9) {
      position->legal_actions(legal);
      if (std::binary_search(legal.begin(), legal.end(), rest % 9)) position->play(static_cast<Action>(rest % 9));
    }
    if (position->moves_played() != 4) continue;
    Search search{SearchSettings{}};
    search.reset(*position);
    search.begin(1500);
    run(search, kGame, model);
    const int score = perfect_score(*position);
    position->play(best(search));
    EXPECT_EQ(perfect_score(*position), -score) << "code " << code;
    ++tested;
  }
  EXPECT_GT(tested, 300u);
}

TEST(Search, VisitsSumToTheSimulations) {
  const HashedModel model(kGame, 5);
  for (const uint32_t simulations : {1u, 2u, 9u, 100u, 1000u}) {
    const Search search = searched("4", simulations, model);
    EXPECT_EQ(search.root_visits(), simulations);
    const Wdl value = search.root_value();
    EXPECT_NEAR(value.win + value.draw + value.loss, 1, 1e-5);
    EXPECT_GE(std::min({value.win, value.draw, value.loss}), -1e-5f);
  }
}

TEST(Search, EvaluatesNoPositionTwiceAndNoneThatItsMovesDecide) {
  const PerfectModel model(kGame);
  searched("0448", 0, model);
  EXPECT_EQ(model.evaluations, 1u);  // the root
  model.evaluations = 0;
  const Search whole = searched("04823", 3000, model);  // 4 moves are left: at most 4! + 4 * 3 * 2 + ... nodes
  EXPECT_LE(model.evaluations, 1u + 4 + 12);
  EXPECT_LE(whole.nodes(), 1u + 4 + 12 + 24);
}

games::Action drawn(Search& search) {
  std::vector<games::Action> legal;
  search.position().legal_actions(legal);
  return legal[search.root_visits() % legal.size()];
}

// Wherever the search proves something, at the root or of a move, it is what perfect play gives.
TEST(Search, WhatIsProvenIsWhatPerfectPlayGives) {
  size_t decided = 0, moves = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const HashedModel model(kGame, seed);
    Search search{SearchSettings{}};
    search.reset(*kGame.start());
    while (!search.position().over()) {  // with the subtree of the move that is made
      search.begin(1 + 7 * (seed % 20));
      run(search, kGame, model);
      const int score = perfect_score(search.position());
      if (search.root_proof() != Proof::kNone) {
        EXPECT_EQ(Wdl::of(outcome_of(search.root_proof())).score(), score);
        EXPECT_EQ(search.root_value().score(), score);
        ++decided;
      }
      for (const Edge& edge : search.root_edges()) {
        if (edge.proof == Proof::kNone) continue;
        const std::unique_ptr<games::Position> next = search.position().clone();
        next->play(edge.action);
        EXPECT_EQ(Wdl::of(outcome_of(edge.proof)).score(), -perfect_score(*next));
        ++moves;
      }
      search.advance(drawn(search));
    }
  }
  EXPECT_GT(decided, 100u);
  EXPECT_GT(moves, 400u);
}

TEST(Search, EndsWhenTheRootIsDecided) {
  const UniformModel model(kGame);
  Search search = searched("0314", 100, model);  // wins at once
  EXPECT_EQ(search.root_proof(), Proof::kWin);
  EXPECT_EQ(search.root_visits(), 0u);
  EXPECT_EQ(search.line(3), (std::vector<games::Action>{2}));
  search = searched("0482", 1'000'000, model);
  EXPECT_EQ(search.root_proof(), perfect_score(search.position()) > 0 ? Proof::kWin : Proof::kDraw);
  EXPECT_LT(search.root_visits(), 500u);
  search.begin(100);
  EXPECT_EQ(search.next_leaf(), nullptr);
}

TEST(Search, AMoveThatIsProvenToLoseIsNotSearched) {
  const UniformModel model(kGame);
  Search search = searched("041", 10, model);  // the opponent wins at 2 unless it is taken
  for (const Edge& edge : search.root_edges()) {
    EXPECT_EQ(edge.proof == Proof::kLoss, edge.action != 2 && edge.visits > 0) << edge.action;
  }
  const auto before = visits(search);
  search.begin(300);
  run(search, kGame, model);
  for (const auto& [action, count] : visits(search)) {
    if (before.at(action) > 0 && action != 2) {
      EXPECT_EQ(count, before.at(action));
    }
  }
}

TEST(Search, WithoutSimulationsTheNetworkAloneDecides) {
  const HashedModel model(kGame, 6);
  const Search search = searched("0314", 0, model);
  EXPECT_EQ(search.root_proof(), Proof::kNone);
  EXPECT_EQ(most_visited(search.root_edges()), most_probable(search.root_edges()));
}

TEST(Search, PerfectValuesGiveThePerfectScore) {
  const PerfectModel model(kGame);
  for (const char* moves : {"", "0", "04", "048", "0314", "041"}) {
    const Search search = searched(moves, 800, model);
    EXPECT_NEAR(search.root_value().score(), perfect_score(*kGame.parse_position(moves)), 0.25) << moves;
  }
}

TEST(Search, IsAFunctionOfItsInput) {
  const HashedModel model(kGame, 1), other(kGame, 2);
  EXPECT_EQ(visits(searched("4", 200, model)), visits(searched("4", 200, model)));
  EXPECT_NE(visits(searched("4", 200, model)), visits(searched("4", 200, other)));
}

TEST(Search, KeepsTheSubtreeOfTheMove) {
  const HashedModel model(kGame, 3);
  Search search = searched("4", 300, model);
  const games::Action action = best(search);
  const Edge before = search.root_edges()[most_visited(search.root_edges())];
  const size_t nodes = search.nodes();
  search.advance(action);
  EXPECT_EQ(search.position().moves_played(), 2u);
  EXPECT_EQ(search.root_visits(), before.visits - 1);  // the first visit evaluated what is the root now
  EXPECT_NEAR(search.root_value().score() * static_cast<float>(before.visits), -before.score, 1e-3);
  EXPECT_LT(search.nodes(), nodes);
  const auto kept = visits(search);
  const uint64_t evaluated = model.evaluations;
  search.begin(0);
  EXPECT_EQ(search.next_leaf(), nullptr);
  search.begin(50);
  run(search, kGame, model);
  EXPECT_EQ(search.root_visits(), before.visits - 1 + 50);
  EXPECT_LE(model.evaluations - evaluated, 50u);
  for (const auto& [move, count] : visits(search)) EXPECT_GE(count, kept.at(move));
}

void expect_same_tree(const Search& expected, const Search& found) {
  EXPECT_EQ(found.nodes(), expected.nodes());
  ASSERT_EQ(found.root_edges().size(), expected.root_edges().size());
  for (size_t i = 0; i < expected.root_edges().size(); ++i) {
    const Edge &a = expected.root_edges()[i], &b = found.root_edges()[i];
    EXPECT_EQ(a.visits, b.visits);
    EXPECT_EQ(a.prior, b.prior);
    EXPECT_EQ(a.score, b.score);
    EXPECT_EQ(a.draws, b.draws);
  }
}

// The kept tree is not only of the right size: it is the tree that a search of that position alone would have after as
// many simulations, because a search continues in a subtree as it would at a root. And both continue in the same way.
TEST(Search, TheKeptSubtreeIsThatOfASearchOfThePosition) {
  const HashedModel model(kGame, 4);
  Search search = searched("4", 400, model);
  const games::Action action = best(search);
  search.advance(action);
  Search alone = searched("4" + std::to_string(action), search.root_visits(), model);
  expect_same_tree(alone, search);
  for (Search* one : {&search, &alone}) {
    one->begin(300);
    run(*one, kGame, model);
  }
  expect_same_tree(alone, search);
}

TEST(Search, ForgetsTheTreeIfAsked) {
  const HashedModel model(kGame, 3);
  Search search = searched("4", 300, model, {.reuse_tree = false});
  search.advance(best(search));
  EXPECT_EQ(search.root_visits(), 0u);
  search.begin(20);
  run(search, kGame, model);
  EXPECT_EQ(search.root_visits(), 20u);
}

TEST(Search, NoiseChangesThePriorsByItsShare) {
  const UniformModel model(kGame);
  const RandomStream stream = move_stream(Purpose::kSelfPlay, 1, 2, 3);
  Search search{SearchSettings{}};
  search.reset(*kGame.start());
  search.begin(10, {.share = 0.25f, .alpha = 1.0f, .stream = stream});
  run(search, kGame, model);
  std::vector<double> shares(9);
  RandomWords words(stream);
  draw_dirichlet(1.0, shares, words);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(search.root_edges()[i].prior, 0.75 / 9 + 0.25 * shares[i], 1e-6);
  }
}

TEST(Search, NoiseIsAlsoAddedToAKeptRootAndOnlyOnce) {
  const UniformModel model(kGame);
  Search search = searched("", 200, model);
  search.advance(4);
  const RandomStream stream = move_stream(Purpose::kSelfPlay, 9, 0, 1);
  search.begin(5, {.share = 0.5f, .alpha = 0.3f, .stream = stream});
  std::vector<float> priors;
  for (const Edge& edge : search.root_edges()) priors.push_back(edge.prior);
  EXPECT_GT(*std::max_element(priors.begin(), priors.end()), 1.2f / 8);
  run(search, kGame, model);
  for (size_t i = 0; i < priors.size(); ++i) EXPECT_EQ(search.root_edges()[i].prior, priors[i]);
}

TEST(Search, FirstPlayUrgencyDecidesHowWideItSearches) {
  const HashedModel model(kGame, 8);
  const auto tried = [&](float reduction) {
    const Search search = searched("", 30, model, {.c_puct = 0.5f, .fpu_reduction = reduction});
    size_t count = 0;
    for (const Edge& edge : search.root_edges()) count += edge.visits > 0 ? 1 : 0;
    return count;
  };
  EXPECT_LT(tried(2.0f), tried(-2.0f));
  EXPECT_EQ(tried(-2.0f), 9u);
}

TEST(Search, BadSettingsAreAnError) {
  EXPECT_THROW(Search({.c_puct = -1}), Error);
  EXPECT_THROW(Search({.c_puct = NAN}), Error);
  try {
    Search search({.fpu_reduction = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[selfplay] fpu_reduction: expected a number from -2 to 2, found 3");
  }
}

}  // namespace
}  // namespace quern::selfplay::test
