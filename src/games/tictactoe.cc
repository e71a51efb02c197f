#include "games/tictactoe.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "games/digit_moves.h"
#include "games/hash.h"

namespace quern::games {
namespace {

constexpr unsigned kSide = 3;
constexpr unsigned kSquares = kSide * kSide;
constexpr uint16_t kFull = 0777;

// Rows, columns and diagonals; square i is bit i, so that an octal digit is a row.
constexpr std::array<uint16_t, 8> kLines = {0007, 0070, 0700, 0111, 0222, 0444, 0421, 0124};

bool has_line(uint16_t marks) {
  return std::ranges::any_of(kLines, [marks](uint16_t line) { return (marks & line) == line; });
}

class TicTacToePosition final : public Position {
 public:
  std::unique_ptr<Position> clone() const override { return std::make_unique<TicTacToePosition>(*this); }
  int player() const override { return static_cast<int>(count_ % 2); }
  size_t moves_played() const override { return count_; }

  void legal_actions(std::vector<Action>& out) const override {
    out.clear();
    if (over()) return;
    for (unsigned square = 0; square < kSquares; ++square) {
      if ((taken() >> square & 1) == 0) out.push_back(static_cast<Action>(square));
    }
  }

  void play(Action action) override {
    assert(action < kSquares && !over() && (taken() >> action & 1) == 0);
    own() = static_cast<uint16_t>(own() | 1 << action);
    moves_[count_++] = static_cast<uint8_t>(action);
  }

  std::optional<Outcome> result_after(Action action) const override {
    const auto after = static_cast<uint16_t>(marks_[count_ % 2] | 1 << action);
    if (has_line(after)) return Outcome::kWin;
    return (after | other()) == kFull ? std::optional(Outcome::kDraw) : std::nullopt;
  }

  bool over() const override { return taken() == kFull || has_line(other()); }
  Outcome outcome() const override { return has_line(other()) ? Outcome::kLoss : Outcome::kDraw; }

  void write_planes(std::span<float> out) const override {
    assert(out.size() == 2 * kSquares);
    for (unsigned square = 0; square < kSquares; ++square) {
      out[square] = static_cast<float>(marks_[count_ % 2] >> square & 1);
      out[kSquares + square] = static_cast<float>(other() >> square & 1);
    }
  }

  uint64_t hash() const override { return mix(1 + marks_[0] + (uint64_t{marks_[1]} << 16)); }

  std::span<const uint8_t> moves() const { return {moves_.data(), count_}; }
  char mark(unsigned square) const { return marks_[0] >> square & 1 ? 'X' : marks_[1] >> square & 1 ? 'O' : '.'; }

 private:
  uint16_t& own() { return marks_[count_ % 2]; }
  uint16_t other() const { return marks_[1 - count_ % 2]; }
  uint16_t taken() const { return marks_[0] | marks_[1]; }

  std::array<uint16_t, 2> marks_{};  // of the player who began, and of the other
  std::array<uint8_t, kSquares> moves_{};
  uint8_t count_ = 0;
};

const TicTacToePosition& cast(const Position& position) { return static_cast<const TicTacToePosition&>(position); }

// Bit 0 of `which` exchanges rows and columns, bit 1 reverses the rows, bit 2 the columns.
Symmetry symmetry(unsigned which) {
  Symmetry result;
  for (unsigned square = 0; square < kSquares; ++square) {
    unsigned row = square / kSide, column = square % kSide;
    if (which & 1) std::swap(row, column);
    if (which & 2) row = kSide - 1 - row;
    if (which & 4) column = kSide - 1 - column;
    result.squares.push_back(static_cast<uint16_t>(row * kSide + column));
  }
  result.actions = result.squares;
  return result;
}

std::vector<Symmetry> all_symmetries() {
  std::vector<Symmetry> result;
  for (unsigned which = 1; which < 8; ++which) result.push_back(symmetry(which));
  return result;
}

class TicTacToe final : public Game {
 public:
  TicTacToe()
      : Game({.name = "tictactoe", .rows = kSide, .columns = kSide, .planes = 2, .actions = kSquares, .max_moves = 9},
             all_symmetries()) {}

  std::unique_ptr<Position> start() const override { return std::make_unique<TicTacToePosition>(); }

  std::string draw(const Position& position) const override {
    std::string text;
    for (unsigned square = 0; square < kSquares; ++square) {
      text += cast(position).mark(square);
      text += square % kSide == kSide - 1 ? '\n' : ' ';
    }
    return text;
  }

  std::string position_text(const Position& position) const override {
    std::string text;
    for (const uint8_t move : cast(position).moves()) text += digit_of(move);
    return text;
  }

  std::unique_ptr<Position> parse_position(std::string_view text) const override { return play_digits(*this, text); }
  std::string action_text(const Position&, Action action) const override { return digit_of(action); }
  Action parse_action(const Position& position, std::string_view text) const override {
    return parse_digit(*this, position, text);
  }
};

}  // namespace

std::unique_ptr<Game> make_tictactoe() { return std::make_unique<TicTacToe>(); }

}  // namespace quern::games
