#include "selfplay/symmetry.h"

#include <algorithm>

#include "selfplay/random_words.h"

namespace quern::selfplay {

size_t draw_symmetry(const games::GameShape& game, uint64_t seed, uint32_t step, uint32_t sample) {
  RandomWords words(RandomStream{seed, Purpose::kAugment, 0, step, sample});
  return words.below(static_cast<uint32_t>(game.symmetries().size() + 1));
}

void apply_symmetry(const games::GameShape& game, size_t symmetry, std::span<const float> planes,
                    std::span<const float> policy, std::span<float> planes_out, std::span<float> policy_out) {
  if (symmetry == 0) {
    std::copy(planes.begin(), planes.end(), planes_out.begin());
    std::copy(policy.begin(), policy.end(), policy_out.begin());
    return;
  }
  const games::Symmetry& mapping = game.symmetries()[symmetry - 1];
  const size_t squares = mapping.squares.size();
  for (size_t first = 0; first < planes.size(); first += squares) {
    for (size_t square = 0; square < squares; ++square) {
      planes_out[first + mapping.squares[square]] = planes[first + square];
    }
  }
  for (size_t action = 0; action < policy.size(); ++action) policy_out[mapping.actions[action]] = policy[action];
}

}  // namespace quern::selfplay
