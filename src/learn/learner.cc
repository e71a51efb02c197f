#include "learn/learner.h"

#include "checkpoint/tensor_refs.h"
#include "core/process_memory.h"
#include "learn/memory.h"
#include "learn/settings.h"

namespace quern::learn {
namespace {

// What self-play takes is planned like what was there before.
train::Plan make_plan(const train::RunConfig& config, const games::GameSpec& game) {
  const nn::Declaration model = nn::BoardModel::declare(board_config(config, game));
  const size_t selfplay = planned_bytes(config, game, model);
  train::Plan plan = train::make_plan(config, model, resident_bytes() + selfplay);
  plan.memory.program -= selfplay;
  plan.memory.selfplay = selfplay;
  return plan;
}

}  // namespace

Learner::Learner(const train::RunConfig& config, const games::GameShape& game, replay::ReplayBuffer& buffer,
                 RunState& state, const ReadAhead* ahead)
    : plan_(make_plan(config, game.spec())),
      model_(board_config(config, game.spec()), plan_.packed),
      batches_(game, buffer,
               {.seed = config.train.seed,
                .symmetries = config.selfplay.symmetries,
                .checked = config.has_own_actors(),
                .ahead = ahead}),
      trainer_(config, plan_, model_, batches_, state),
      weights_(checkpoint::tensor_refs(model_.parameters(), model_.weights().values())),
      states_(checkpoint::optimizer_refs(model_.parameters(), trainer_.optimizer())) {}

void Learner::begin(uint64_t seed) {
  model_.initialise(seed);
  trainer_.optimizer().reset();
  trainer_.resume();
}

}  // namespace quern::learn
