// Which move follows from a search.
#pragma once

#include <cstddef>
#include <span>

#include "selfplay/random_words.h"
#include "selfplay/tree.h"

namespace quern::selfplay {

// The index of the most visited move; of equally visited ones that with the highest prior, then the first. So it is
// the move with the highest prior if none was visited. There must be a move.
size_t most_visited(std::span<const Edge> edges) noexcept;

// Draws an index in proportion to visits ^ (1 / temperature); most_visited() if there are no visits. Two words.
size_t draw_by_visits(std::span<const Edge> edges, float temperature, RandomWords& words) noexcept;

}  // namespace quern::selfplay
