// The arguments of UCI's `go`, and how long a search takes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "games/chess_board.h"

namespace quern::cli {

// Times are in milliseconds.
struct UciGo {
  std::optional<uint64_t> nodes, movetime, movestogo;
  std::array<std::optional<uint64_t>, 2> time{};  // left on the clock, by colour
  std::array<uint64_t, 2> increment{};            // for each move
  bool infinite = false;
  std::vector<std::string> searchmoves;  // as text; empty: all

  std::vector<std::string> ignored;  // what was not understood
};

// Reads what follows "go". Negative times, which interfaces send when a clock has run out, are 0. `depth`, `mate` and
// `ponder` are read and have no effect: a tree search has no depth.
UciGo read_go(std::string_view text);

// When a search ends.
struct UciBudget {
  uint64_t nodes = 0;             // simulations
  std::optional<double> seconds;  // at most
  bool infinite = false;          // answer only when stopped
};

// A search without limits of its own gets `nodes` simulations. With a clock, a move gets the time left / the moves to
// the next time control (30 if there is none), and 3/4 of the increment; at most a half of the time left. `overhead` is
// taken off, for the way of the move to the interface; at least a millisecond is left.
UciBudget budget_of(const UciGo& go, games::chess::Color turn, uint64_t nodes, uint64_t overhead);

}  // namespace quern::cli
