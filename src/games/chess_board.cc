#include "games/chess_board.h"

#include <cassert>
#include <cstdlib>

#include "games/hash.h"

namespace quern::games::chess {
namespace {

constexpr size_t kTurnKey = 2 * kPieces * 64, kCastlingKeys = kTurnKey + 1, kEnPassantKeys = kCastlingKeys + 16,
                 kKeys = kEnPassantKeys + 8;

constexpr std::array<uint64_t, kKeys> make_keys() {
  std::array<uint64_t, kKeys> keys{};
  for (size_t i = 0; i < kKeys; ++i) keys[i] = nth_key(i);
  return keys;
}

constexpr std::array<uint64_t, kKeys> kKeyTable = make_keys();

uint64_t piece_key(Color color, Piece piece, int square) {
  return kKeyTable[(color * kPieces + piece) * 64 + static_cast<size_t>(square)];
}

// The rights that are lost when a piece leaves a square or is taken there.
constexpr std::array<uint8_t, 64> make_lost_rights() {
  std::array<uint8_t, 64> lost{};
  lost[0] = kWhiteQueenside, lost[7] = kWhiteKingside, lost[4] = kWhiteKingside | kWhiteQueenside;
  lost[56] = kBlackQueenside, lost[63] = kBlackKingside, lost[60] = kBlackKingside | kBlackQueenside;
  return lost;
}

constexpr std::array<uint8_t, 64> kLostRights = make_lost_rights();

// Moves the rook of a castling move.
void move_rook(Placement& placement, Color color, int king_to) {
  const bool kingside = file_of(king_to) == 6;
  placement.remove(color, kRook, kingside ? king_to + 1 : king_to - 2);
  placement.put(color, kRook, kingside ? king_to - 1 : king_to + 1);
}

// The square that the opponent may take, after a pawn of `color` moved by two squares.
uint8_t capturable_passage(const Board& board, Color color, int passage) {
  Bitboard takers = kPawnAttacks[color][static_cast<size_t>(passage)] & board.placement.of(opponent(color), kPawn);
  while (takers) {
    if (board.safe_en_passant(take_square(takers), passage)) return static_cast<uint8_t>(passage);
  }
  return kNoSquare;
}

}  // namespace

Piece Placement::piece_at(int square) const {
  for (size_t piece = 0; piece < kPieces; ++piece) {
    if (pieces[piece] & bit(square)) return static_cast<Piece>(piece);
  }
  return kNoPiece;
}

void Placement::put(Color color, Piece piece, int square) {
  pieces[piece] |= bit(square);
  colors[color] |= bit(square);
  key ^= piece_key(color, piece, square);
}

void Placement::remove(Color color, Piece piece, int square) {
  pieces[piece] &= ~bit(square);
  colors[color] &= ~bit(square);
  key ^= piece_key(color, piece, square);
}

Bitboard Board::attackers(int square, Color color, Bitboard all) const {
  const auto s = static_cast<size_t>(square);
  const auto& pieces = placement.pieces;
  return placement.colors[color] &
         ((kPawnAttacks[opponent(color)][s] & pieces[kPawn]) | (kKnightAttacks[s] & pieces[kKnight]) |
          (kKingAttacks[s] & pieces[kKing]) | (rook_attacks(square, all) & (pieces[kRook] | pieces[kQueen])) |
          (bishop_attacks(square, all) & (pieces[kBishop] | pieces[kQueen])));
}

bool Board::safe_en_passant(int from, int to) const {
  const Color mover = placement.color_at(from);
  const Bitboard victim = bit(en_passant_victim(to));
  const Bitboard all = (placement.all() ^ bit(from) ^ victim) | bit(to);
  return (attackers(king(mover), opponent(mover), all) & ~victim) == 0;
}

void Board::play(Move move) {
  const int from = move.from, to = move.to;
  const Color enemy = opponent(turn);
  const Piece piece = placement.piece_at(from);
  const Piece taken = placement.piece_at(to);
  assert(piece != kNoPiece && taken != kKing);

  if (taken != kNoPiece) placement.remove(enemy, taken, to);
  placement.remove(turn, piece, from);
  placement.put(turn, move.promotion == kNoPiece ? piece : move.promotion, to);
  if (piece == kPawn && to == en_passant) placement.remove(enemy, kPawn, en_passant_victim(to));
  if (piece == kKing && std::abs(from - to) == 2) move_rook(placement, turn, to);

  castling = static_cast<uint8_t>(castling & ~(kLostRights[move.from] | kLostRights[move.to]));
  const bool passed = piece == kPawn && std::abs(from - to) == 16;
  en_passant = passed ? capturable_passage(*this, turn, (from + to) / 2) : kNoSquare;
  halfmove_clock = piece == kPawn || taken != kNoPiece ? 0 : static_cast<uint8_t>(halfmove_clock + 1);
  fullmove = static_cast<uint16_t>(fullmove + turn);
  turn = enemy;
}

uint64_t Board::key() const {
  uint64_t key = placement.key ^ kKeyTable[kCastlingKeys + castling];
  if (turn == kBlack) key ^= kKeyTable[kTurnKey];
  if (en_passant != kNoSquare) key ^= kKeyTable[kEnPassantKeys + static_cast<size_t>(file_of(en_passant))];
  return key;
}

std::string square_name(int square) {
  return {static_cast<char>('a' + file_of(square)), static_cast<char>('1' + rank_of(square))};
}

}  // namespace quern::games::chess
