// Two games to test self-play with: tic-tac-toe, and Connect Four on bitboards.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "games/game.h"

namespace quern::selfplay::test {

using games::Action;
using games::Outcome;

inline uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// A game where a move fills a square, and the player who fills a line of his wins. Boards are bits.
template <typename Rules>
class LinePosition : public games::Position {
 public:
  std::unique_ptr<Position> clone() const override { return std::make_unique<LinePosition>(*this); }
  int player() const override { return static_cast<int>(moves_ % 2); }
  size_t moves_played() const override { return moves_; }

  void legal_actions(std::vector<Action>& out) const override {
    out.clear();
    if (over()) return;
    for (size_t action = 0; action < Rules::kActions; ++action) {
      if (Rules::landing(own_ | other_, action) != 0) out.push_back(static_cast<Action>(action));
    }
  }

  void play(Action action) override {
    own_ |= Rules::landing(own_ | other_, action);
    won_ = Rules::has_line(own_);
    std::swap(own_, other_);
    ++moves_;
  }

  std::optional<Outcome> result_after(Action action) const override {  // allocates nothing
    LinePosition next = *this;
    next.play(action);
    if (!next.over()) return std::nullopt;
    return flipped(next.outcome());
  }

  bool over() const override { return won_ || moves_ == Rules::kSquares; }
  Outcome outcome() const override { return won_ ? Outcome::kLoss : Outcome::kDraw; }

  void write_planes(std::span<float> out) const override {
    for (size_t square = 0; square < Rules::kSquares; ++square) {
      out[square] = static_cast<float>(own_ >> Rules::bit(square) & 1);
      out[Rules::kSquares + square] = static_cast<float>(other_ >> Rules::bit(square) & 1);
    }
  }

  uint64_t hash() const override { return mix(own_ * 0x9E3779B97F4A7C15 + mix(other_ + 1)); }

  uint64_t own() const { return own_; }
  uint64_t other() const { return other_; }

 private:
  uint64_t own_ = 0, other_ = 0;  // of the player to move, and of the opponent
  size_t moves_ = 0;
  bool won_ = false;  // by the player who moved last
};

template <typename Rules>
class LineGame : public games::Game {
 public:
  LineGame() : Game(Rules::spec(), Rules::symmetries()) {}

  std::unique_ptr<games::Position> start() const override { return std::make_unique<LinePosition<Rules>>(); }
  std::string draw(const games::Position& position) const override { return position_text(position); }
  std::string position_text(const games::Position& position) const override {
    return std::to_string(position.moves_played());
  }
  // The moves, one digit each, such as "0418".
  std::unique_ptr<games::Position> parse_position(std::string_view text) const override {
    std::unique_ptr<games::Position> position = start();
    for (const char digit : text) position->play(static_cast<Action>(digit - '0'));
    return position;
  }
  std::string action_text(const games::Position&, Action action) const override { return std::to_string(action); }
  Action parse_action(const games::Position&, std::string_view text) const override {
    return static_cast<Action>(text[0] - '0');
  }
};

struct TicTacToeRules {
  static constexpr size_t kSquares = 9, kActions = 9;
  static constexpr size_t bit(size_t square) { return square; }
  static uint64_t landing(uint64_t stones, size_t action) { return ~stones & uint64_t{1} << action; }
  static bool has_line(uint64_t stones) {
    constexpr std::array<uint64_t, 8> kLines = {0007, 0070, 0700, 0111, 0222, 0444, 0421, 0124};
    return std::any_of(kLines.begin(), kLines.end(), [&](uint64_t line) { return (stones & line) == line; });
  }
  static games::GameSpec spec() {
    return {.name = "toy-tictactoe", .rows = 3, .columns = 3, .planes = 2, .actions = 9, .max_moves = 9};
  }
  // The seven of the square.
  static std::vector<games::Symmetry> symmetries() {
    std::vector<games::Symmetry> all(7);
    for (size_t s = 1; s < 8; ++s) {
      for (size_t square = 0; square < 9; ++square) {
        size_t row = square / 3, column = square % 3;
        if ((s & 1) != 0) row = 2 - row;
        if ((s & 2) != 0) column = 2 - column;
        if ((s & 4) != 0) std::swap(row, column);
        all[s - 1].squares.push_back(static_cast<uint16_t>(row * 3 + column));
      }
      all[s - 1].actions = all[s - 1].squares;
    }
    return all;
  }
};

struct FourRules {  // a column has 7 bits, of which 6 are squares
  static constexpr size_t kSquares = 42, kActions = 7;
  static constexpr size_t bit(size_t square) { return square % 7 * 7 + square / 7; }
  static uint64_t landing(uint64_t stones, size_t column) {
    const uint64_t all = uint64_t{0x3F} << 7 * column, here = stones & all;
    return (here + (uint64_t{1} << 7 * column)) & all;
  }
  static bool has_line(uint64_t stones) {
    constexpr std::array<int, 4> kSteps = {1, 6, 7, 8};
    return std::any_of(kSteps.begin(), kSteps.end(), [&](int step) {
      const uint64_t pairs = stones & stones >> step;
      return (pairs & pairs >> 2 * step) != 0;
    });
  }
  static games::GameSpec spec() {
    return {.name = "toy-four", .rows = 6, .columns = 7, .planes = 2, .actions = 7, .max_moves = 42};
  }
  static std::vector<games::Symmetry> symmetries() {
    games::Symmetry mirror;
    for (size_t square = 0; square < 42; ++square) {
      mirror.squares.push_back(static_cast<uint16_t>(square / 7 * 7 + 6 - square % 7));
    }
    for (size_t column = 0; column < 7; ++column) mirror.actions.push_back(static_cast<Action>(6 - column));
    return {mirror};
  }
};

using TicTacToe = LineGame<TicTacToeRules>;
using Four = LineGame<FourRules>;

// The value of a tic-tac-toe position for the player to move: 1 win, 0 draw, -1 loss.
inline int perfect_score(const games::Position& position) {
  if (position.over()) return position.outcome() == Outcome::kLoss ? -1 : 0;
  std::vector<Action> legal;
  position.legal_actions(legal);
  int best = -1;
  for (const Action action : legal) {
    const std::unique_ptr<games::Position> next = position.clone();
    next->play(action);
    best = std::max(best, -perfect_score(*next));
  }
  return best;
}

}  // namespace quern::selfplay::test
