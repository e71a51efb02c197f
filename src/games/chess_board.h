// A chess board, and what else decides which moves are legal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "games/chess_attacks.h"

namespace quern::games::chess {

enum Color : uint8_t { kWhite, kBlack };
constexpr Color opponent(Color color) { return static_cast<Color>(1 - color); }

enum Piece : uint8_t { kPawn, kKnight, kBishop, kRook, kQueen, kKing, kNoPiece };
inline constexpr size_t kPieces = 6;

inline constexpr uint8_t kNoSquare = 64;

// Castling is a move of the king by two squares.
struct Move {
  uint8_t from, to;
  Piece promotion;  // kNoPiece for all other moves

  friend bool operator==(const Move&, const Move&) = default;
};

// Rights to castle, as bits.
enum Castling : uint8_t { kWhiteKingside = 1, kWhiteQueenside = 2, kBlackKingside = 4, kBlackQueenside = 8 };

// Where the pieces are.
struct Placement {
  std::array<Bitboard, kPieces> pieces{};  // of both colours
  std::array<Bitboard, 2> colors{};
  uint64_t key = 0;  // for equal placements equal, for others different, but for chance

  Bitboard all() const { return colors[kWhite] | colors[kBlack]; }
  Bitboard of(Color color, Piece piece) const { return colors[color] & pieces[piece]; }
  Piece piece_at(int square) const;                                                            // kNoPiece if empty
  Color color_at(int square) const { return colors[kBlack] & bit(square) ? kBlack : kWhite; }  // of a piece

  void put(Color color, Piece piece, int square);
  void remove(Color color, Piece piece, int square);
};

struct Board {
  Placement placement;
  Color turn = kWhite;
  uint8_t castling = 0;
  uint8_t en_passant = kNoSquare;  // the square that a pawn has passed, if it can be captured there by a legal move
  uint8_t halfmove_clock = 0;      // moves of both since the last capture or move of a pawn
  uint16_t fullmove = 1;           // counts Black's moves, from 1

  int king(Color color) const { return std::countr_zero(placement.of(color, kKing)); }

  // The pieces of `color` that attack a square, if `all` were all pieces.
  Bitboard attackers(int square, Color color, Bitboard all) const;
  Bitboard checkers() const { return attackers(king(turn), opponent(turn), placement.all()); }

  // `from` to `to` takes a pawn that has just passed `to`: whether the king would then be safe.
  bool safe_en_passant(int from, int to) const;

  // Makes a legal move.
  void play(Move move);

  // Equal for positions that the rule of threefold repetition holds equal, for others different, but for chance.
  uint64_t key() const;
};

// The square that is captured by a move to `to` en passant: on the rank from which the pawn comes.
constexpr int en_passant_victim(int to) { return to ^ 8; }

std::string square_name(int square);  // e4

}  // namespace quern::games::chess
