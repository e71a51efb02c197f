// Rows of a replay buffer that the caller's own actors fill, to train on instead of games of this run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "games/game.h"
#include "learn/async_actors.h"
#include "learn/network.h"
#include "replay/buffer.h"

namespace quern::learn {

struct OwnRows {
  const games::GameShape& shape;
  replay::ReplayBuffer& buffer;  // with rows of the shape (selfplay/rows.h)
  // Called by the thread of the run before the first step, every selfplay.generation_steps steps, and after the last
  // one, with the weights; may be empty.
  std::function<void(std::shared_ptr<const Network> network)> publish = {};
};

// Such actors, as the learner sees them.
class OwnActors final : public AsyncActors {
 public:
  OwnActors(const OwnRows& rows, std::shared_ptr<const Network> network) : rows_(rows) { publish(std::move(network)); }

  Totals totals() const override { return {}; }
  bool failed() const noexcept override { return false; }
  void look() override {}
  void publish(std::shared_ptr<const Network> network) override {
    if (rows_.publish) rows_.publish(std::move(network));
  }
  uint64_t launches() const override { return 0; }

 private:
  const OwnRows& rows_;
};

}  // namespace quern::learn
