// Results that are certain, as the ends of games make them, whatever the network says.
#pragma once

#include <cstdint>
#include <optional>

#include "games/game.h"

namespace quern::selfplay {

// In ascending order of what a player prefers, but for kNone: nothing is known.
enum class Proof : uint8_t { kNone, kLoss, kDraw, kWin };

constexpr Proof proof_of(const std::optional<games::Outcome>& outcome) noexcept {
  return outcome ? static_cast<Proof>(1 + static_cast<int>(*outcome)) : Proof::kNone;
}

// `proof` must not be kNone.
constexpr games::Outcome outcome_of(Proof proof) noexcept {
  return static_cast<games::Outcome>(static_cast<int>(proof) - 1);
}

// The same for the other player.
constexpr Proof flipped(Proof proof) noexcept {
  return proof == Proof::kNone ? proof : static_cast<Proof>(4 - static_cast<int>(proof));
}

// The result for the player to move, from those of all his moves: a win if a move wins; the best of them if all are
// certain.
class ProofOfMoves {
 public:
  void add(Proof move) noexcept {
    if (move == Proof::kNone) open_ = true;
    if (move > best_) best_ = move;
  }
  Proof result() const noexcept { return open_ && best_ != Proof::kWin ? Proof::kNone : best_; }

 private:
  Proof best_ = Proof::kNone;
  bool open_ = false;
};

}  // namespace quern::selfplay
