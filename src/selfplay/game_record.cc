#include "selfplay/game_record.h"

#include <algorithm>

namespace quern::selfplay {

size_t planned_record_bytes(const games::GameSpec& spec, const PlaySettings& settings) {
  constexpr size_t kUsualMoves = 80;  // of a long game
  const size_t row = sizeof(float) * (spec.planes * spec.squares() + spec.actions + 3);
  const double rows = settings.full_share * static_cast<double>(std::min(spec.max_moves / 2, kUsualMoves));
  return static_cast<size_t>((1 + rows) * 1.5) * row;  // vectors that double when they are full
}

}  // namespace quern::selfplay
