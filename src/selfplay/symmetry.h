// Training rows as a symmetric position would have given them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "games/game.h"

namespace quern::selfplay {

// Which symmetry a row of a training batch is seen under: 0 for none, i for symmetries()[i - 1]; each with the same
// probability. A function of its arguments alone.
size_t draw_symmetry(const games::GameShape& game, uint64_t seed, uint32_t step, uint32_t sample);

// Writes a row as seen under a symmetry, numbered as above: planes (planes, rows, columns) and policy (actions). The
// outcome stays the same. Outputs must not alias inputs.
void apply_symmetry(const games::GameShape& game, size_t symmetry, std::span<const float> planes,
                    std::span<const float> policy, std::span<float> planes_out, std::span<float> policy_out);

}  // namespace quern::selfplay
