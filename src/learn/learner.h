// The learner of a run of self-play: trains the board network on rows of the replay buffer.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "games/game.h"
#include "learn/network.h"
#include "learn/row_batches.h"
#include "nn/models/board.h"
#include "replay/buffer.h"
#include "train/plan.h"
#include "train/trainer.h"

namespace quern::learn {

class Learner {
 public:
  // The game and the buffer must outlive it. `config` is in force for all steps. `state` says which step is next, and
  // is advanced by every step. `ahead` as in RowOptions. The weights are undefined until begin() or a load into
  // tensors() and resume().
  Learner(const train::RunConfig& config, const games::GameShape& game, replay::ReplayBuffer& buffer, RunState& state,
          const ReadAhead* ahead);

  void begin(uint64_t seed);  // initial weights
  void resume() { trainer_.resume(); }

  // Trainer::step(). It does not wait for the buffer's rate limit. It reads ahead: call release() before the buffer
  // changes, if the run must be reproducible.
  train::StepReport step() { return trainer_.step(); }
  void release() { trainer_.resume(); }

  // A copy of the weights.
  std::shared_ptr<const Network> network() const { return std::make_shared<Network>(model_); }

  checkpoint::Tensors tensors() const { return {weights_, states_}; }
  const train::Plan& plan() const { return plan_; }
  train::Trainer& trainer() { return trainer_; }
  const nn::BoardModel& model() const { return model_; }

 private:
  train::Plan plan_;
  nn::BoardModel model_;
  RowBatches batches_;
  train::Trainer trainer_;
  std::vector<checkpoint::TensorRef> weights_, states_;
};

}  // namespace quern::learn
