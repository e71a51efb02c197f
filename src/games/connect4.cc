#include "games/connect4.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "games/digit_moves.h"
#include "games/hash.h"

namespace quern::games {
namespace {

using Board = Connect4Board;

// The bit of square row * 7 + column, where row 0 is the top.
constexpr uint64_t cell(int square) {
  return Board::bottom(square % Board::kColumns) << (Board::kRows - 1 - square / Board::kColumns);
}

class Connect4Position final : public Position {
 public:
  std::unique_ptr<Position> clone() const override { return std::make_unique<Connect4Position>(*this); }
  int player() const override { return count_ % 2; }
  size_t moves_played() const override { return count_; }

  void legal_actions(std::vector<Action>& out) const override {
    out.clear();
    if (over()) return;
    for (int column = 0; column < Board::kColumns; ++column) {
      if (board_.can_play(column)) out.push_back(static_cast<Action>(column));
    }
  }

  void play(Action action) override {
    assert(action < Board::kColumns && !over() && board_.can_play(action));
    board_.play(action);
    moves_[count_++] = static_cast<uint8_t>(action);
  }

  std::optional<Outcome> result_after(Action action) const override {
    Board next = board_;
    next.play(action);
    if (!next.over()) return std::nullopt;
    return next.lost() ? Outcome::kWin : Outcome::kDraw;
  }

  bool over() const override { return board_.over(); }
  Outcome outcome() const override { return board_.lost() ? Outcome::kLoss : Outcome::kDraw; }

  void write_planes(std::span<float> out) const override {
    assert(out.size() == 3 * Board::kCells);
    float* plane = out.data();
    for (int square = 0; square < Board::kCells; ++square) {
      plane[square] = board_.own & cell(square) ? 1.0f : 0.0f;
      plane[Board::kCells + square] = board_.other() & cell(square) ? 1.0f : 0.0f;
    }
    std::fill_n(plane + 2 * Board::kCells, Board::kCells, static_cast<float>(player()));
  }

  // Different for different boards, without exception, because key() and mix() are.
  uint64_t hash() const override { return mix(board_.key()); }

  const Board& board() const { return board_; }
  std::span<const uint8_t> moves() const { return {moves_.data(), count_}; }

 private:
  Board board_;
  std::array<uint8_t, Board::kCells> moves_{};  // columns, for the position's text
  uint8_t count_ = 0;
};

const Connect4Position& cast(const Position& position) { return static_cast<const Connect4Position&>(position); }

Symmetry mirror() {
  Symmetry result;
  for (int square = 0; square < Board::kCells; ++square) {
    const int column = square % Board::kColumns;
    result.squares.push_back(static_cast<uint16_t>(square - column + Board::kColumns - 1 - column));
  }
  for (int column = 0; column < Board::kColumns; ++column) {
    result.actions.push_back(static_cast<Action>(Board::kColumns - 1 - column));
  }
  return result;
}

class Connect4 final : public Game {
 public:
  Connect4()
      : Game({.name = "connect4",
              .rows = Board::kRows,
              .columns = Board::kColumns,
              .planes = 3,
              .actions = Board::kColumns,
              .max_moves = Board::kCells},
             {mirror()}) {}

  std::unique_ptr<Position> start() const override { return std::make_unique<Connect4Position>(); }

  std::string draw(const Position& position) const override {
    const Board& board = cast(position).board();
    const uint64_t first = position.player() == 0 ? board.own : board.other();
    std::string text = "1 2 3 4 5 6 7\n";
    for (int square = 0; square < Board::kCells; ++square) {
      text += first & cell(square) ? 'X' : board.all & cell(square) ? 'O' : '.';
      text += square % Board::kColumns == Board::kColumns - 1 ? '\n' : ' ';
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

std::unique_ptr<Game> make_connect4() { return std::make_unique<Connect4>(); }

const Connect4Board& connect4_board(const Position& position) { return cast(position).board(); }

}  // namespace quern::games
