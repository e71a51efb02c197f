#include "games/chess_moves.h"

namespace quern::games::chess {
namespace {

constexpr Bitboard kLastRanks = 0xFF000000000000FF;
constexpr Bitboard kDarkSquares = 0xAA55AA55AA55AA55;

class Generator {
 public:
  Generator(const Board& board, MoveList& out)
      : board_(board),
        out_(out),
        own_(board.placement.colors[board.turn]),
        enemy_(board.placement.colors[opponent(board.turn)]),
        all_(own_ | enemy_),
        king_(board.king(board.turn)),
        checkers_(board.checkers()) {}

  void run() {
    add_king_moves();
    if (checkers_ & (checkers_ - 1)) return;  // only the king can answer two checks
    targets_ = ~own_;
    if (checkers_) targets_ &= checkers_ | between(king_, std::countr_zero(checkers_));
    find_pinned();
    add_piece_moves();
    add_pawn_moves();
    if (board_.en_passant != kNoSquare) add_en_passant();
    if (checkers_ == 0) add_castling();
  }

 private:
  Bitboard own(Piece piece) const { return own_ & board_.placement.pieces[piece]; }

  void add(int from, Bitboard targets) {
    while (targets) {
      out_.push({static_cast<uint8_t>(from), static_cast<uint8_t>(take_square(targets)), kNoPiece});
    }
  }

  bool attacked(int square, Bitboard all) const { return board_.attackers(square, opponent(board_.turn), all) != 0; }

  void add_king_moves() {
    Bitboard targets = kKingAttacks[static_cast<size_t>(king_)] & ~own_;
    const Bitboard others = all_ ^ bit(king_);  // the king does not hide the squares behind it
    while (targets) {
      const int to = take_square(targets);
      if (!attacked(to, others)) add(king_, bit(to));
    }
  }

  // A piece is pinned if it is alone between its king and an enemy that would attack the king.
  void find_pinned() {
    const auto& pieces = board_.placement.pieces;
    Bitboard snipers = enemy_ & ((rook_attacks(king_, enemy_) & (pieces[kRook] | pieces[kQueen])) |
                                 (bishop_attacks(king_, enemy_) & (pieces[kBishop] | pieces[kQueen])));
    while (snipers) {
      const Bitboard hidden_by = between(king_, take_square(snipers)) & own_;
      if ((hidden_by & (hidden_by - 1)) == 0) pinned_ |= hidden_by;
    }
  }

  // Where a piece that is not the king may go.
  Bitboard allowed(int from) const { return pinned_ & bit(from) ? targets_ & common_line(king_, from) : targets_; }

  void add_piece_moves() {
    for (Bitboard knights = own(kKnight) & ~pinned_; knights;) {
      const int from = take_square(knights);
      add(from, kKnightAttacks[static_cast<size_t>(from)] & targets_);
    }
    for (Bitboard rooks = own(kRook) | own(kQueen); rooks;) {
      const int from = take_square(rooks);
      add(from, rook_attacks(from, all_) & allowed(from));
    }
    for (Bitboard bishops = own(kBishop) | own(kQueen); bishops;) {
      const int from = take_square(bishops);
      add(from, bishop_attacks(from, all_) & allowed(from));
    }
  }

  void add_pawn_moves() {
    for (Bitboard pawns = own(kPawn); pawns;) {
      const int from = take_square(pawns);
      const Bitboard captures = kPawnAttacks[board_.turn][static_cast<size_t>(from)] & enemy_;
      const Bitboard to = (captures | pawn_pushes(from)) & allowed(from);
      to& kLastRanks ? add_promotions(from, to) : add(from, to);
    }
  }

  Bitboard pawn_pushes(int from) const {
    const bool white = board_.turn == kWhite;
    const Bitboard one = (white ? bit(from) << 8 : bit(from) >> 8) & ~all_;
    if (one == 0 || rank_of(from) != (white ? 1 : 6)) return one;
    return one | ((white ? one << 8 : one >> 8) & ~all_);
  }

  void add_promotions(int from, Bitboard targets) {
    while (targets) {
      const auto to = static_cast<uint8_t>(take_square(targets));
      for (const Piece piece : {kQueen, kRook, kBishop, kKnight}) out_.push({static_cast<uint8_t>(from), to, piece});
    }
  }

  void add_en_passant() {
    Bitboard takers = kPawnAttacks[opponent(board_.turn)][board_.en_passant] & own(kPawn);
    while (takers) {
      const int from = take_square(takers);
      if (board_.safe_en_passant(from, board_.en_passant)) add(from, bit(board_.en_passant));
    }
  }

  void add_castling() {
    const bool white = board_.turn == kWhite;
    if (board_.castling & (white ? kWhiteKingside : kBlackKingside)) castle(king_ + 2, bit(king_ + 1) | bit(king_ + 2));
    if (board_.castling & (white ? kWhiteQueenside : kBlackQueenside)) {
      castle(king_ - 2, bit(king_ - 1) | bit(king_ - 2) | bit(king_ - 3));
    }
  }

  void castle(int to, Bitboard empty) {
    if ((all_ & empty) == 0 && !attacked((king_ + to) / 2, all_) && !attacked(to, all_)) add(king_, bit(to));
  }

  const Board& board_;
  MoveList& out_;
  const Bitboard own_, enemy_, all_;
  const int king_;
  const Bitboard checkers_;
  Bitboard targets_ = 0;  // squares that answer a check, if there is one
  Bitboard pinned_ = 0;
};

// Whether a knight, or a pawn by a step forwards, can move that no piece pins: because it shares no line with its king.
// The king must not be in check.
bool has_free_move(const Board& board) {
  const auto king = static_cast<size_t>(board.king(board.turn));
  const Bitboard lines = kFileLines[king] | kRankLines[king] | kDiagonals[king] | kAntidiagonals[king];
  const Bitboard own = board.placement.colors[board.turn], free = own & ~lines, all = board.placement.all();
  const Bitboard pawns = free & board.placement.pieces[kPawn];
  if ((board.turn == kWhite ? pawns << 8 : pawns >> 8) & ~all) return true;
  for (Bitboard knights = free & board.placement.pieces[kKnight]; knights;) {
    if (kKnightAttacks[static_cast<size_t>(take_square(knights))] & ~own) return true;
  }
  return false;
}

}  // namespace

MoveList legal_moves(const Board& board) {
  MoveList moves;
  Generator(board, moves).run();
  return moves;
}

bool has_legal_move(const Board& board) {
  if (board.checkers() == 0 && has_free_move(board)) return true;
  return !legal_moves(board).empty();
}

bool insufficient_material(const Placement& placement) {
  const auto& pieces = placement.pieces;
  if (pieces[kPawn] | pieces[kRook] | pieces[kQueen]) return false;
  if (std::popcount(pieces[kKnight] | pieces[kBishop]) <= 1) return true;
  if (pieces[kKnight]) return false;
  return (pieces[kBishop] & kDarkSquares) == 0 || (pieces[kBishop] & ~kDarkSquares) == 0;
}

std::string move_text(Move move) {
  std::string text = square_name(move.from) + square_name(move.to);
  if (move.promotion != kNoPiece) text += "pnbrqk"[move.promotion];
  return text;
}

}  // namespace quern::games::chess
