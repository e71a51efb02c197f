// How often a network is wrong, where perfect play is known.
#pragma once

#include <cstddef>
#include <span>

#include "games/solved_positions.h"
#include "selfplay/chosen_moves.h"

namespace quern::selfplay {

// Numbers of positions.
struct Mistakes {
  size_t positions = 0;
  size_t policy = 0;          // where the move of the network alone is a mistake (games/solved_positions.h)
  size_t searched = 0;        // where the move of the search is one
  size_t right_outcomes = 0;  // where the most likely of the network's win, draw and loss is the result of perfect play

  bool operator==(const Mistakes&) const = default;
};

// `chosen`: one for each of the positions. `progress` is that of SolvedPositions::mistakes().
Mistakes count_mistakes(games::SolvedPositions& solved, std::span<const ChosenMove> chosen,
                        const games::SolverProgress& progress = {});

// The most likely one; of equals the better one.
games::Outcome likeliest(const Wdl& value);

}  // namespace quern::selfplay
