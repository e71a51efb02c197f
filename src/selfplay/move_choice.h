// Which move follows from a search, and what is trained of it. A move that is proven to win is preferred to all others,
// and a move that is proven to lose is made only if all are.
#pragma once

#include <cstddef>
#include <span>

#include "selfplay/random_words.h"
#include "selfplay/tree.h"

namespace quern::selfplay {

// The index of the most visited move; of equally visited ones that with the highest prior, then the first. So it is
// the move with the highest prior if none was visited. There must be a move.
size_t most_visited(std::span<const Edge> edges) noexcept;

// The index of the move with the highest prior: the network's own choice.
size_t most_probable(std::span<const Edge> edges) noexcept;

// Draws an index in proportion to visits ^ (1 / temperature); most_visited() if there are no visits. Two words.
size_t draw_by_visits(std::span<const Edge> edges, float temperature, RandomWords& words) noexcept;

// The distribution that a network learns: the share of each move of the visits, or equal shares of the moves that are
// proven to win. Equal shares, too, where nothing was visited. `shares` has as many elements as there are moves.
void write_shares(std::span<const Edge> edges, std::span<float> shares) noexcept;

}  // namespace quern::selfplay
