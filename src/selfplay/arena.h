// Matches between two players.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "games/game.h"
#include "selfplay/match_player.h"
#include "selfplay/match_result.h"

namespace quern::selfplay {

struct MatchSettings {
  size_t openings = 100;     // each is played twice, so that each player begins once
  size_t opening_moves = 2;  // random legal moves that lead to an opening
  uint64_t seed = 1;         // of the openings and of choosers
  size_t threads = 1;
  size_t games_at_once = 128;  // of each thread: the size of a batch
  // Called now and then, by the calling thread, with numbers of games.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

// The result for the first player. A function of the players, the game, `openings`, `opening_moves` and `seed`: players
// that do not draw random numbers play the same game from the same opening, and equal players score exactly a half.
// Error for settings out of range, a player that is not one, and an illegal move; rethrows what players throw.
MatchResult play_match(const games::Game& game, const MatchPlayer& first, const MatchPlayer& second,
                       const MatchSettings& settings);

// The same, by who began.
MatchSides play_match_sides(const games::Game& game, const MatchPlayer& first, const MatchPlayer& second,
                            const MatchSettings& settings);

}  // namespace quern::selfplay
