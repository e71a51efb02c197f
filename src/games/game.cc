#include "games/game.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "games/chess.h"
#include "games/connect4.h"
#include "games/tictactoe.h"

namespace quern::games {

std::optional<Outcome> Position::result_after(Action action) const {
  const std::unique_ptr<Position> next = clone();
  next->play(action);
  if (!next->over()) return std::nullopt;
  return flipped(next->outcome());
}

namespace {

template <typename Number>
void check_permutation(const std::vector<Number>& numbers, size_t size, const std::string& what) {
  std::vector<bool> found(size);
  for (const Number number : numbers) {
    if (number < size) found[number] = true;
  }
  if (numbers.size() == size && std::ranges::all_of(found, [](bool there) { return there; })) return;
  throw Error("{}: expected each number from 0 to {} once, found {} numbers that are not this", what, size - 1,
              numbers.size());
}

}  // namespace

void check(const GameShape& shape, std::string_view where) {
  const GameSpec& spec = shape.spec();
  const auto expect = [&](std::string_view what, size_t found, size_t low, size_t high) {
    if (found < low || found > high) throw Error("{}: expected {} to {} {}, found {}", where, low, high, what, found);
  };
  expect("planes", spec.planes, 1, kMaxPlanes);
  expect("rows", spec.rows, 1, kMaxSquares);
  expect("columns", spec.columns, 1, kMaxSquares);
  expect("squares", spec.squares(), 2, kMaxSquares);
  expect("actions", spec.actions, 1, kMaxActions);
  expect("moves of the longest game", spec.max_moves, 0, kLongestGame);
  for (size_t i = 0; i < shape.symmetries().size(); ++i) {
    const Symmetry& symmetry = shape.symmetries()[i];
    check_permutation(symmetry.squares, spec.squares(), fmt::format("{}: squares of symmetry {}", where, i));
    check_permutation(symmetry.actions, spec.actions, fmt::format("{}: actions of symmetry {}", where, i));
  }
}

std::unique_ptr<Game> make_game(std::string_view name) {
  if (name == "tictactoe") return make_tictactoe();
  if (name == "connect4") return make_connect4();
  if (name == "chess") return make_chess();
  if (name.starts_with("python:")) {
    throw Error(
        "[games] {}: written in Python, where its rules are: use the package, quern.selfplay(game, out=RUN, "
        "resume=True) or quern.load_board(RUN, game=game)",
        name);
  }
  if (name == "positions") {
    throw Error(
        "[games] positions: trained by quern.train_board() in Python, without rules of a game: use the package, "
        "quern.load_board(RUN)");
  }
  throw Error("[games] name: expected tictactoe, connect4 or chess, found {}", in_quotes(name));
}

}  // namespace quern::games
