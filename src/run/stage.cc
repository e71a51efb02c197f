#include "run/stage.h"

#include "config/history.h"
#include "config/model_settings.h"

namespace quern::train {
namespace {

uint64_t first_step_of(const RunConfig& config, uint64_t step) {
  uint64_t first = 1;
  for (const RunConfig::Change& change : config.history) {
    if (change.from_step <= step) first = change.from_step;
  }
  return first;
}

uint64_t last_step_of(const RunConfig& config, uint64_t step) {
  const std::optional<uint64_t> next = next_change(config, step);
  return next ? *next - 1 : config.train.steps;
}

}  // namespace

Stage::Stage(const StageContext& run, RunState& state)
    : config(config_at(run.config, state.step + 1)),
      first_step(first_step_of(run.config, state.step + 1)),
      last_step(last_step_of(run.config, state.step + 1)),
      plan(make_plan(config, run.dataset.vocabulary, run.program_bytes, run.ranks.place())),
      batches(training_batches(config, run.dataset, {.step = state.next_data_step(), .sequence = state.data_position})),
      model(nn::make_language_model(model_config(config, run.dataset.vocabulary), plan.packed)),
      samples(config, run.dataset, run.folder),
      validation(config, run.dataset),
      trainer(config, plan, *model, *batches, state,
              {.ranks = run.ranks.communicator(), .sources = run.dataset.sources.size()}),
      checkpoints(run.config, run.folder, *model, trainer.optimizer(), run.dataset.tokenizer.get(), run.ranks),
      health(model->parameters()) {}

}  // namespace quern::train
