#include "games/test_sets.h"

#include <unordered_set>
#include <utility>

#include "games/chess_mates.h"
#include "games/connect4_positions.h"

namespace quern::games {
namespace {

TestSet stage_set(const Game& game, const char* name, Stage stage, size_t count, uint64_t seed) {
  TestSet set{.name = name, .positions = {}};
  for (const Connect4TestPosition& position : connect4_test_positions(stage, count, seed)) {
    set.positions.push_back(game.parse_position(position.moves));
  }
  return set;
}

// Breadth first from the start.
TestSet reachable_set(const Game& game) {
  TestSet set{.name = "all", .positions = {}};
  std::unordered_set<uint64_t> known;
  set.positions.push_back(game.start());
  std::vector<Action> actions;
  for (size_t i = 0; i < set.positions.size(); ++i) {
    set.positions[i]->legal_actions(actions);
    for (const Action action : actions) {
      std::unique_ptr<Position> next = set.positions[i]->clone();
      next->play(action);
      if (!next->over() && known.insert(next->hash()).second) set.positions.push_back(std::move(next));
    }
  }
  return set;
}

}  // namespace

std::vector<TestSet> test_sets(const Game& game, size_t count, uint64_t seed) {
  std::vector<TestSet> sets;
  if (game.spec().name == "tictactoe") {
    sets.push_back(reachable_set(game));
    return sets;
  }
  if (game.spec().name == "chess") {
    sets.push_back({.name = "mate in 1", .positions = mate_in_one_positions(count, seed)});
    return sets;
  }
  sets.push_back(stage_set(game, "begin", Stage::kBegin, count, seed));
  sets.push_back(stage_set(game, "middle", Stage::kMiddle, count, seed));
  sets.push_back(stage_set(game, "end", Stage::kEnd, count, seed));
  return sets;
}

}  // namespace quern::games
