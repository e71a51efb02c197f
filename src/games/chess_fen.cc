#include "games/chess_fen.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/error.h"

namespace quern::games::chess {
namespace {

constexpr std::string_view kLetters = "PNBRQKpnbrqk";
constexpr std::string_view kCastlingLetters = "KQkq";
constexpr Bitboard kFirstAndLastRank = 0xFF000000000000FF;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Board read() {
    const std::vector<std::string_view> fields = split();
    read_placement(fields[0]);
    check_pieces();
    read_turn(fields[1]);
    read_castling(fields[2]);
    if (board_.attackers(board_.king(opponent(board_.turn)), board_.turn, board_.placement.all())) {
      fail("a king that cannot be taken",
           board_.turn == kWhite ? "White to move and Black in check" : "Black to move and White in check");
    }
    read_en_passant(fields[3]);
    board_.halfmove_clock = static_cast<uint8_t>(number(fields[4], "moves since a capture or pawn move", 0, 100));
    board_.fullmove = static_cast<uint16_t>(number(fields[5], "the number of the move", 1, 9999));
    return board_;
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw Error("[chess] FEN {}: expected {}, found {}", in_quotes(text_, 100), expected, found);
  }

  std::vector<std::string_view> split() const {
    std::vector<std::string_view> fields;
    std::string_view rest = text_;
    for (size_t space; (space = rest.find(' ')) != std::string_view::npos; rest = rest.substr(space + 1)) {
      fields.push_back(rest.substr(0, space));
    }
    fields.push_back(rest);
    if (fields.size() == 4) fields.insert(fields.end(), {"0", "1"});
    if (fields.size() != 6) fail("4 or 6 fields with a space between them", std::to_string(fields.size()));
    return fields;
  }

  void read_placement(std::string_view field) {
    int rank = 7, file = 0;
    bool after_digit = false;
    for (const char c : field) {
      if (c == '/') {
        end_rank(rank--, file);
        if (rank < 0) fail("8 ranks", "more");
        file = 0;
      } else {
        if (after_digit && is_count(c)) fail("no digit after a digit", in_quotes(field));
        file += read_square(c, file, rank);
      }
      after_digit = is_count(c);
    }
    end_rank(rank, file);
    if (rank != 0) fail("8 ranks", std::to_string(8 - rank));
  }

  static bool is_count(char c) { return c >= '1' && c <= '8'; }

  void end_rank(int rank, int files) const {
    if (files != 8) fail(fmt::format("8 squares on rank {}", rank + 1), std::to_string(files));
  }

  // Returns how many squares `c` stands for.
  int read_square(char c, int file, int rank) {
    if (is_count(c)) return c - '0';
    const size_t letter = kLetters.find(c);
    if (letter == std::string_view::npos) fail("a piece of PNBRQKpnbrqk or a digit from 1 to 8", in_quotes({&c, 1}));
    if (file >= 8) fail(fmt::format("8 squares on rank {}", rank + 1), "more");
    board_.placement.put(letter < kPieces ? kWhite : kBlack, static_cast<Piece>(letter % kPieces),
                         square_at(file, rank));
    return 1;
  }

  void check_pieces() const {
    if (board_.placement.pieces[kPawn] & kFirstAndLastRank) fail("no pawn on ranks 1 and 8", "one");
    for (const Color color : {kWhite, kBlack}) {
      const std::string_view name = color == kWhite ? "White" : "Black";
      const auto count = [&](Piece piece) { return std::popcount(board_.placement.of(color, piece)); };
      if (count(kKing) != 1) fail(fmt::format("one king of {}", name), std::to_string(count(kKing)));
      const int promoted = std::max(count(kKnight) - 2, 0) + std::max(count(kBishop) - 2, 0) +
                           std::max(count(kRook) - 2, 0) + std::max(count(kQueen) - 1, 0);
      if (count(kPawn) + promoted > 8) {
        fail(fmt::format("at most 8 pawns and promoted pieces of {}", name), std::to_string(count(kPawn) + promoted));
      }
    }
  }

  void read_turn(std::string_view field) {
    if (field != "w" && field != "b") fail("w or b as the player to move", in_quotes(field));
    board_.turn = field == "w" ? kWhite : kBlack;
  }

  void read_castling(std::string_view field) {
    if (field == "-") return;
    size_t last = 0;
    for (const char c : field) {
      const size_t right = kCastlingLetters.find(c, last);
      if (right == std::string_view::npos)
        fail("rights to castle, - or letters of KQkq in this order", in_quotes(field));
      check_right(right);
      board_.castling = static_cast<uint8_t>(board_.castling | 1 << right);
      last = right + 1;
    }
    if (field.empty()) fail("rights to castle, - or letters of KQkq in this order", "''");
  }

  void check_right(size_t right) const {
    const Color color = right < 2 ? kWhite : kBlack;
    const int rank = color == kWhite ? 0 : 7, rook = square_at(right % 2 == 0 ? 7 : 0, rank);
    const Placement& placement = board_.placement;
    if ((placement.of(color, kKing) & bit(square_at(4, rank))) && (placement.of(color, kRook) & bit(rook))) return;
    fail(fmt::format("a king on {} and a rook on {} for the right {}", square_name(square_at(4, rank)),
                     square_name(rook), kCastlingLetters[right]),
         "others");
  }

  void read_en_passant(std::string_view field) {
    if (field == "-") return;
    const int rank = board_.turn == kWhite ? 5 : 2;
    if (field.size() != 2 || field[0] < 'a' || field[0] > 'h' || field[1] != '1' + rank) {
      fail(fmt::format("- or a square of rank {} that a pawn has passed", rank + 1), in_quotes(field));
    }
    const int passed = square_at(field[0] - 'a', rank), pawn = en_passant_victim(passed), from = 2 * passed - pawn;
    const Placement& placement = board_.placement;
    if (!(placement.of(opponent(board_.turn), kPawn) & bit(pawn)) || (placement.all() & (bit(passed) | bit(from)))) {
      fail(fmt::format("a pawn on {} that has passed {}", square_name(pawn), field), "none");
    }
    if (can_capture(passed)) board_.en_passant = static_cast<uint8_t>(passed);
  }

  bool can_capture(int passed) const {
    Bitboard takers =
        kPawnAttacks[opponent(board_.turn)][static_cast<size_t>(passed)] & board_.placement.of(board_.turn, kPawn);
    while (takers) {
      if (board_.safe_en_passant(take_square(takers), passed)) return true;
    }
    return false;
  }

  int number(std::string_view field, std::string_view what, int least, int most) const {
    int value = -1;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool is_plain = !field.empty() && field[0] != '-' && (field[0] != '0' || field.size() == 1);
    if (!is_plain || error != std::errc() || end != field.data() + field.size() || value < least || value > most) {
      fail(fmt::format("{}, {} to {}", what, least, most), in_quotes(field));
    }
    return value;
  }

  std::string_view text_;
  Board board_;
};

std::string placement_text(const Placement& placement) {
  std::string text;
  for (int rank = 7; rank >= 0; --rank) {
    char empty = '0';
    for (int file = 0; file < 8; ++file) {
      const int square = square_at(file, rank);
      const Piece piece = placement.piece_at(square);
      if (piece == kNoPiece) {
        ++empty;
        continue;
      }
      if (empty != '0') text += std::exchange(empty, '0');
      text += kLetters[placement.color_at(square) * kPieces + piece];
    }
    if (empty != '0') text += empty;
    if (rank > 0) text += '/';
  }
  return text;
}

std::string castling_text(uint8_t castling) {
  std::string text;
  for (size_t right = 0; right < kCastlingLetters.size(); ++right) {
    if (castling >> right & 1) text += kCastlingLetters[right];
  }
  return text.empty() ? "-" : text;
}

}  // namespace

Board read_fen(std::string_view text) { return Reader(text).read(); }

std::string write_fen(const Board& board) {
  return fmt::format("{} {} {} {} {} {}", placement_text(board.placement), board.turn == kWhite ? 'w' : 'b',
                     castling_text(board.castling), board.en_passant == kNoSquare ? "-" : square_name(board.en_passant),
                     board.halfmove_clock, board.fullmove);
}

}  // namespace quern::games::chess
