#include "games/chess_mates.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "games/chess.h"
#include "games/random_moves.h"

namespace quern::games {
namespace {

constexpr uint32_t kLeastMoves = 120;  // drawn below it

bool mates(const Position& position, Action action) { return position.result_after(action) == Outcome::kWin; }

// Null if the game ends before.
std::unique_ptr<Position> play_to_mate_in_one(const Game& game, RandomMoves& random) {
  const uint32_t least = random.below(kLeastMoves);
  std::unique_ptr<Position> position = game.start();
  for (std::vector<Action> legal; !position->over();) {
    position->legal_actions(legal);
    const bool found = std::ranges::any_of(legal, [&](Action action) { return mates(*position, action); });
    if (found && position->moves_played() >= least) return position;
    position->play(legal[random.below(static_cast<uint32_t>(legal.size()))]);
  }
  return nullptr;
}

}  // namespace

std::vector<std::unique_ptr<Position>> mate_in_one_positions(size_t count, uint64_t seed) {
  const std::unique_ptr<Game> game = make_chess();
  std::vector<std::unique_ptr<Position>> result;
  std::unordered_set<uint64_t> known;
  for (uint32_t number = 0; result.size() < count; ++number) {
    RandomMoves random(seed, number);
    std::unique_ptr<Position> position = play_to_mate_in_one(*game, random);
    if (position && known.insert(chess_board(*position).key()).second) result.push_back(std::move(position));
  }
  return result;
}

Outcome MateInOneSolver::outcome(const Position& position) {
  if (position.over()) return position.outcome();
  std::vector<Action> legal;
  position.legal_actions(legal);
  return std::ranges::any_of(legal, [&](Action action) { return mates(position, action); }) ? Outcome::kWin
                                                                                            : Outcome::kDraw;
}

}  // namespace quern::games
