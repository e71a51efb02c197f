#include "games/chess_position.h"

#include <algorithm>
#include <cassert>

#include "games/chess_actions.h"
#include "games/chess_moves.h"
#include "games/hash.h"

namespace quern::games::chess {
namespace {

constexpr size_t kSquares = 64;

void fill_plane(float* plane, float value) { std::fill_n(plane, kSquares, value); }

// Sets the squares of `pieces` to 1, seen by `viewer`.
void mark(float* plane, Bitboard pieces, Color viewer) {
  while (pieces) plane[viewed(take_square(pieces), viewer)] = 1.0f;
}

void mark_placement(float* planes, const Placement& placement, Color viewer) {
  for (const Color color : {viewer, opponent(viewer)}) {
    for (size_t piece = 0; piece < kPieces; ++piece, planes += kSquares) {
      mark(planes, placement.of(color, static_cast<Piece>(piece)), viewer);
    }
  }
}

Bitboard castling_rooks(uint8_t castling) {
  Bitboard rooks = 0;
  if (castling & kWhiteKingside) rooks |= bit(7);
  if (castling & kWhiteQueenside) rooks |= bit(0);
  if (castling & kBlackKingside) rooks |= bit(63);
  if (castling & kBlackQueenside) rooks |= bit(56);
  return rooks;
}

// Draws that need no look at the moves or at earlier positions.
bool drawn_by_count(const Board& board, size_t moves_played) {
  return board.halfmove_clock >= kFiftyMoves || moves_played >= kMaxGame || insufficient_material(board.placement);
}

}  // namespace

ChessPosition::ChessPosition(const Board& board) : board_(board) { find_end(); }

void ChessPosition::legal_actions(std::vector<Action>& out) const {
  out.clear();
  if (over_) return;
  for (const Move move : legal_moves(board_)) out.push_back(action_of(move, board_.turn));
  std::ranges::sort(out);
}

void ChessPosition::play(Action action) {
  assert(!over_);
  remember();
  board_.play(move_of(action, board_));
  ++moves_played_;
  find_repetitions();
  find_end();
}

void ChessPosition::remember() {
  std::copy_backward(earlier_.begin(), earlier_.end() - 1, earlier_.end());
  earlier_[0] = {board_.placement, repetitions_ > 0};
  if (earlier_count_ < kHistory) ++earlier_count_;
  keys_[key_count_++] = board_.key();
}

// How often a position was among the first of keys_, where that with its number would be the next one. Only every
// second one has the same player to move.
uint8_t ChessPosition::occurrences(uint64_t key, int positions) const {
  uint8_t count = 0;
  for (int i = positions - 2; i >= 0; i -= 2) count += keys_[static_cast<size_t>(i)] == key;
  return count;
}

void ChessPosition::find_repetitions() {
  if (board_.halfmove_clock == 0) key_count_ = 0;
  repetitions_ = occurrences(board_.key(), key_count_);
}

void ChessPosition::find_end() {
  over_ = true;
  mated_ = false;
  if (!has_legal_move(board_)) {
    mated_ = board_.checkers() != 0;
    return;
  }
  over_ = repetitions_ >= 2 || drawn_by_count(board_, moves_played_);
}

// What play() would find, without the history for the planes: most moves end nothing, and search asks for every legal
// move of every position that it evaluates.
std::optional<Outcome> ChessPosition::result_after(Action action) const {
  Board next = board_;
  next.play(move_of(action, board_));
  if (!has_legal_move(next)) return next.checkers() != 0 ? Outcome::kWin : Outcome::kDraw;
  const bool repeated = next.halfmove_clock != 0 && occurrences(next.key(), key_count_ + 1) >= 2;
  if (repeated || drawn_by_count(next, moves_played_ + 1u)) return Outcome::kDraw;
  return std::nullopt;
}

void ChessPosition::write_planes(std::span<float> out) const {
  assert(out.size() == kPlanes * kSquares);
  std::ranges::fill(out, 0.0f);
  float* planes = out.data();
  mark_placement(planes, board_.placement, board_.turn);
  if (repetitions_ > 0) fill_plane(planes + 12 * kSquares, 1.0f);
  if (board_.turn == kBlack) fill_plane(planes + 13 * kSquares, 1.0f);
  mark(planes + 14 * kSquares, castling_rooks(board_.castling), board_.turn);
  if (board_.en_passant != kNoSquare) mark(planes + 15 * kSquares, bit(board_.en_passant), board_.turn);
  fill_plane(planes + 16 * kSquares, static_cast<float>(board_.halfmove_clock) / kFiftyMoves);
  fill_plane(planes + 17 * kSquares, static_cast<float>(moves_played_) / kMaxGame);
  planes += kCurrentPlanes * kSquares;
  for (size_t i = 0; i < earlier_count_; ++i, planes += kHistoryPlanes * kSquares) {
    mark_placement(planes, earlier_[i].placement, board_.turn);
    if (earlier_[i].repeated) fill_plane(planes + 12 * kSquares, 1.0f);
  }
}

uint64_t ChessPosition::hash() const {
  uint64_t hash = mix(board_.key() ^ mix(board_.halfmove_clock | repetitions_ << 8 | uint64_t{moves_played_} << 16));
  for (size_t i = 0; i < earlier_count_; ++i) hash = mix(hash ^ (earlier_[i].placement.key + earlier_[i].repeated));
  return hash;
}

}  // namespace quern::games::chess
