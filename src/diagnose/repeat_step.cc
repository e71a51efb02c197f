#include "diagnose/repeat_step.h"

#include <algorithm>
#include <memory>

#include "kernels/cross_entropy.h"

namespace quern::train {

uint64_t StepTokens::counted_targets() const {
  const auto ignored = std::count(targets.begin(), targets.end(), kernels::kIgnoreTarget);
  return targets.size() - static_cast<uint64_t>(ignored);
}

StepTokens read_step(const StepContext& step, const RunState& at) {
  const std::unique_ptr<data::BatchReader> reader = step.batches.reader(at.stream.value_or(data::StreamPosition{}));
  data::Batch batch;
  batch.step = at.next_data_step();
  StepTokens tokens;
  for (const StepPart& part : step.plan.cut.parts()) {
    batch.first = static_cast<uint32_t>(part.sequences.begin);
    batch.sequences = static_cast<uint32_t>(part.sequences.size());
    batch.columns = Columns(step.batches.columns(), batch.sequences);
    reader->read(batch);
    const auto inputs = batch.columns.ints(kTokensColumn), targets = batch.columns.ints(kTargetsColumn);
    tokens.inputs.insert(tokens.inputs.end(), inputs.begin(), inputs.end());
    tokens.targets.insert(tokens.targets.end(), targets.begin(), targets.end());
  }
  return tokens;
}

// One sequence per turn is bit-identical to many at once. The workers are idle meanwhile: the end of the last step made
// their writes visible, and the queue will make the writes here visible to them.
Findings examine(const StepContext& step, const StepTokens& tokens, const RunState& at) {
  const size_t T = step.config.model.context;
  const StepCut cut{.sequences = step.config.sequences_per_step(), .share = {.lanes = step.config.train.lanes}};
  const std::vector<StepPart> parts = cut.parts();
  const float scale = scale_of(tokens.counted_targets());
  step.gradient.measure(false);
  FirstBad watch;
  for (size_t s = 0; s < parts.size() && !watch.where(); ++s) {
    step.model.forward_backward(
        {.columns = {{kTokensColumn, tokens.inputs.data() + s * T}, {kTargetsColumn, tokens.targets.data() + s * T}},
         .sequences = 1,
         .T = T,
         .seed = step.config.train.seed,
         .step = at.next_data_step(),
         .first_sequence = static_cast<uint32_t>(s),
         .turn = {.number = step.turns++,
                  .first = parts[s].first,
                  .last = parts[s].last,
                  .lane = static_cast<uint32_t>(parts[s].lane)}},
        {.scale = scale, .gradient = step.gradient, .watch = &watch}, step.work);
  }
  step.gradient.join_all();
  return {.weight = first_bad_tensor(step.model.parameters(), step.model.weights().values()), .pass = watch.where()};
}

}  // namespace quern::train
