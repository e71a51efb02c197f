// quern.BoardModel: the network of a run of self-play.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "config/config.h"
#include "games.h"
#include "games/game.h"
#include "learn/network.h"
#include "module.h"

namespace quern::python {

class BoardModel {
 public:
  // `path`: of the run. `game`: its rules, if they are known.
  BoardModel(std::filesystem::path path, train::RunConfig config, games::GameSpec spec,
             std::shared_ptr<const learn::Network> network, uint64_t step, std::optional<GameArgument> game);

  const std::filesystem::path path;
  const train::RunConfig config;
  const games::GameSpec spec;
  const std::shared_ptr<const learn::Network> network;
  const uint64_t step;
  const std::optional<GameArgument> game;

  // Its rules. Error if there are none.
  const GameArgument& rules() const;

  // Any thread, without the GIL: planes (count, planes, rows, columns) to logits (count, actions), outcomes (count, 3).
  void evaluate(size_t count, const float* planes, float* logits, float* outcomes) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<selfplay::Evaluator>> idle_;  // guarded; their buffers take a while to make
};

}  // namespace quern::python
