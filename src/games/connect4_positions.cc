#include "games/connect4_positions.h"

#include <optional>
#include <unordered_set>

#include "games/random_moves.h"

namespace quern::games {
namespace {

using Board = Connect4Board;

struct MoveCounts {
  uint32_t least, most;
};

MoveCounts move_counts(Stage stage) {
  switch (stage) {
    case Stage::kBegin:
      return {8, 14};
    case Stage::kMiddle:
      return {15, 28};
    default:
      return {29, 40};  // one cell left is no choice
  }
}

int random_column(const Board& board, RandomMoves& random) {
  int column;
  do {
    column = static_cast<int>(random.below(Board::kColumns));
  } while (!board.can_play(column));
  return column;
}

// nullopt if the game ends before.
std::optional<Connect4TestPosition> play_random(uint32_t moves, RandomMoves& random) {
  Connect4TestPosition position;
  for (uint32_t i = 0; i < moves; ++i) {
    const int column = random_column(position.board, random);
    position.board.play(column);
    position.moves += static_cast<char>('1' + column);
    if (position.board.over()) return std::nullopt;
  }
  return position;
}

}  // namespace

std::vector<Connect4TestPosition> connect4_test_positions(Stage stage, size_t count, uint64_t seed) {
  const MoveCounts range = move_counts(stage);
  std::vector<Connect4TestPosition> result;
  std::unordered_set<uint64_t> known;
  for (uint32_t game = 0; result.size() < count; ++game) {
    RandomMoves random(seed, game);
    const uint32_t moves = range.least + random.below(range.most - range.least + 1);
    auto position = play_random(moves, random);
    if (position && known.insert(position->board.key()).second) result.push_back(*std::move(position));
  }
  return result;
}

}  // namespace quern::games
