// The network of a run of self-play, for playing with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "config/config.h"
#include "evaluate/load.h"
#include "games/game.h"
#include "learn/network.h"

namespace quern::learn {

struct SavedBoard {
  std::filesystem::path folder;  // of the run
  train::RunConfig config;
  games::GameSpec spec;
  std::shared_ptr<const Network> network;
  uint64_t step = 0;
};
struct SavedNetwork {
  std::filesystem::path folder;
  train::RunConfig config;
  std::shared_ptr<const games::Game> game;
  std::shared_ptr<const Network> network;
  uint64_t step = 0;
};

// The network of a checkpoint, by default the newest complete one of the run in `folder`; the arguments are those of
// train::find_checkpoint(). Error if there is no such run or checkpoint, if it is not of self-play, or if the
// checkpoint is damaged.
SavedBoard load_board(const std::filesystem::path& folder, const train::Warn& warn, std::string_view wanted = {});

// The same with the rules of its game. `game`: the game that is expected; empty for any. Error if it is another game,
// or one that games::make_game() does not know.
SavedNetwork load_network(const std::filesystem::path& folder, const train::Warn& warn, std::string_view game = {},
                          std::string_view wanted = {});

}  // namespace quern::learn
