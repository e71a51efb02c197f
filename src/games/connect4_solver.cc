#include "games/connect4_solver.h"

#include <algorithm>
#include <array>

#include "games/connect4.h"

namespace quern::games {
namespace {

using Board = Connect4Board;

constexpr int kMaxScore = 18;  // the first player needs 4 stones: 22 - 4
constexpr int kBias = 32;
constexpr unsigned kScoreBits = 6;

// Mirrored boards share an entry while there are few stones and both are likely to be reached.
constexpr int kMirroredStones = 12;

// The score of a win with the next stone, if `stones` are on the board.
int win_next(int stones) { return (Board::kCells + 1 - stones) / 2; }

// The empty cells that complete four of `stones` in a line, reachable or not.
uint64_t completions(uint64_t stones, uint64_t all) {
  uint64_t cells = stones << 1 & stones << 2 & stones << 3;  // from below
  for (const int step : {Board::kStride - 1, Board::kStride, Board::kStride + 1}) {
    const uint64_t below = stones << step, above = stones >> step;
    const uint64_t two_below = below & below << step, two_above = above & above >> step;
    cells |= (two_below & (stones << (3 * step) | above)) | (two_above & (stones >> (3 * step) | below));
  }
  return cells & Board::kBoard & ~all;
}

// The landings that do not let the opponent win with its next stone; none if that cannot be prevented.
uint64_t safe_landings(const Board& board) {
  const uint64_t threats = completions(board.other(), board.all);
  uint64_t cells = board.landings();
  if (const uint64_t forced = cells & threats) {
    if (forced & (forced - 1)) return 0;  // two at once
    cells = forced;
  }
  return cells & ~(threats >> 1);  // not below a cell where the opponent wins
}

// Of a board with at most one stone, which would take minutes: solved by Allen and by Allis in 1988. The player who
// begins in the centre wins, next to it draws, and farther outside loses.
Outcome opening_result(const Board& board) {
  if (board.all == 0 || board.all == Board::bottom(3)) return board.all == 0 ? Outcome::kWin : Outcome::kLoss;
  return board.all & (Board::bottom(2) | Board::bottom(4)) ? Outcome::kDraw : Outcome::kWin;
}

uint64_t mirrored_key(const Board& board) {
  const uint64_t key = board.key();
  uint64_t result = 0;
  for (int column = 0; column < Board::kColumns; ++column) {
    const uint64_t bits = key >> (column * Board::kStride) & 127;
    result |= bits << ((Board::kColumns - 1 - column) * Board::kStride);
  }
  return result;
}

uint64_t table_key(const Board& board) {
  if (board.stones() > kMirroredStones) return board.key();
  return std::min(board.key(), mirrored_key(board));
}

// Moves in the order to try them: those that create the most winning cells first, then those near the centre.
struct OrderedMoves {
  struct Move {
    uint64_t cell;
    int threats;
  };
  std::array<Move, Board::kColumns> moves;
  int count = 0;

  OrderedMoves(const Board& board, uint64_t cells) {
    for (const int column : {3, 2, 4, 1, 5, 0, 6}) {
      if (const uint64_t cell = cells & Board::column_cells(column)) insert(board, cell);
    }
  }

  void insert(const Board& board, uint64_t cell) {
    const int threats = std::popcount(completions(board.own | cell, board.all | cell));
    int at = count++;
    for (; at > 0 && moves[static_cast<size_t>(at - 1)].threats < threats; --at) {
      moves[static_cast<size_t>(at)] = moves[static_cast<size_t>(at - 1)];
    }
    moves[static_cast<size_t>(at)] = {cell, threats};
  }

  const Move* begin() const { return moves.data(); }
  const Move* end() const { return moves.data() + count; }
};

Board after(Board board, uint64_t cell) {
  board.play_cell(cell);
  return board;
}

}  // namespace

Connect4Solver::Connect4Solver(unsigned table_bits) : table_(size_t{1} << table_bits), shift_(64 - table_bits) {}

// MTD(f) of Plaat, Schaeffer, Pijls and de Bruin (1996): windows of width 1, from 0 towards the score.
int Connect4Solver::score(const Connect4Board& board) {
  int lower = -kMaxScore, upper = kMaxScore, bound = 0;
  while (lower < upper) {
    const int beta = std::max(bound, lower + 1);
    bound = bounded_score(board, beta - 1, beta);
    (bound < beta ? upper : lower) = bound;
  }
  return lower;
}

Outcome Connect4Solver::outcome(const Connect4Board& board) {
  if (board.stones() <= 1) return opening_result(board);
  const int score = bounded_score(board, -1, 1);
  return score > 0 ? Outcome::kWin : score < 0 ? Outcome::kLoss : Outcome::kDraw;
}

Outcome Connect4Solver::outcome(const Position& position) { return outcome(connect4_board(position)); }

// A window of width 1.
bool Connect4Solver::reaches(const Position& position, Outcome wanted) {
  const int least = static_cast<int>(wanted) - static_cast<int>(Outcome::kDraw);
  if (wanted == Outcome::kLoss) return true;
  if (connect4_board(position).stones() <= 1) return outcome(position) >= wanted;
  return bounded_score(connect4_board(position), least - 1, least) >= least;
}

int Connect4Solver::bounded_score(const Connect4Board& board, int alpha, int beta) {
  if (board.lost()) return -win_next(board.stones() - 1);
  if (board.landings() & completions(board.own, board.all)) return win_next(board.stones());
  return search(board, alpha, beta);
}

int Connect4Solver::search(const Connect4Board& board, int alpha, int beta) {
  ++nodes_;
  const int stones = board.stones();
  const uint64_t cells = safe_landings(board);
  if (cells == 0) return stones == Board::kCells ? 0 : -win_next(stones + 1);
  if (stones >= Board::kCells - 2) return 0;

  // Neither wins with its next stone: at best each with the one after.
  const uint64_t key = table_key(board);
  Bounds bounds = find(key);
  bounds.lower = std::max(bounds.lower, -win_next(stones + 3));
  bounds.upper = std::min(bounds.upper, win_next(stones + 2));
  alpha = std::max(alpha, bounds.lower);
  beta = std::min(beta, bounds.upper);
  if (alpha >= beta) return bounds.lower >= beta ? bounds.lower : bounds.upper;

  const int best = search_moves(board, cells, alpha, beta);
  if (best > alpha) bounds.lower = best;
  if (best < beta) bounds.upper = best;
  store(key, bounds);
  return best;
}

int Connect4Solver::search_moves(const Connect4Board& board, uint64_t cells, int alpha, int beta) {
  const OrderedMoves moves(board, cells);
  for (const auto& [cell, threats] : moves) {
    const int bound = -find(table_key(after(board, cell))).upper;
    if (bound >= beta) return bound;  // known without a search
  }
  int best = -kMaxScore;
  for (const auto& [cell, threats] : moves) {
    best = std::max(best, -search(after(board, cell), -beta, -std::max(alpha, best)));
    if (best >= beta) break;
  }
  return best;
}

Connect4Solver::Bounds Connect4Solver::find(uint64_t key) {
  const uint64_t entry = slot(key);
  if (entry >> (2 * kScoreBits) != key) return {-kMaxScore, kMaxScore};
  constexpr uint64_t kMask = (1 << kScoreBits) - 1;
  return {static_cast<int>(entry >> kScoreBits & kMask) - kBias, static_cast<int>(entry & kMask) - kBias};
}

void Connect4Solver::store(uint64_t key, Bounds bounds) {
  slot(key) = key << (2 * kScoreBits) | static_cast<uint64_t>(bounds.lower + kBias) << kScoreBits |
              static_cast<uint64_t>(bounds.upper + kBias);
}

}  // namespace quern::games
