#include "diagnose/repeat_step.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "kernels/cross_entropy.h"

namespace quern::train {

namespace {

uint64_t counted(std::span<const int32_t> targets) {
  return targets.size() - static_cast<uint64_t>(std::count(targets.begin(), targets.end(), kernels::kIgnoreTarget));
}

bool has_positions(const data::BatchSource& batches) {
  return std::ranges::any_of(batches.columns(),
                             [](const ColumnSpec& column) { return column.name == kPositionsColumn; });
}

}  // namespace

uint64_t StepTokens::counted_targets() const { return counted(targets); }

double StepTokens::mean_loss(size_t sequence, size_t T, double sum) const {
  const uint64_t count = counted(std::span(targets).subspan(sequence * T, T));
  return sum / static_cast<double>(std::max<uint64_t>(count, 1));
}

StepTokens read_step(const StepContext& step, const RunState& at) {
  const std::unique_ptr<data::BatchReader> reader = step.batches.reader(at.stream.value_or(data::StreamPosition{}));
  data::Batch batch;
  batch.step = at.next_data_step();
  StepTokens tokens;
  for (const StepPart& part : step.plan.cut.whole().parts()) {
    batch.first = static_cast<uint32_t>(part.sequences.begin);
    batch.sequences = static_cast<uint32_t>(part.sequences.size());
    batch.columns = Columns(step.batches.columns(), batch.sequences);
    reader->read(batch);
    const auto inputs = batch.columns.ints(kTokensColumn), targets = batch.columns.ints(kTargetsColumn);
    tokens.inputs.insert(tokens.inputs.end(), inputs.begin(), inputs.end());
    tokens.targets.insert(tokens.targets.end(), targets.begin(), targets.end());
    if (!has_positions(step.batches)) continue;
    const auto positions = batch.columns.ints(kPositionsColumn);
    tokens.positions.insert(tokens.positions.end(), positions.begin(), positions.end());
  }
  return tokens;
}

// One sequence per turn is bit-identical to many at once. The workers are idle meanwhile: the end of the last step made
// their writes visible, and the queue will make the writes here visible to them.
Findings examine(const StepContext& step, const StepTokens& tokens, const RunState& at) {
  const size_t T = step.config.model.context;
  const StepCut cut{.sequences = step.config.sequences_per_step(), .share = {.lanes = step.config.lanes()}};
  const std::vector<StepPart> parts = cut.parts();
  const float scale = scale_of(tokens.counted_targets());
  // Of several ranks, only one is here, and its gradient has no place for the lanes of others.
  std::optional<nn::Gradient> of_all_lanes;
  if (step.plan.cut.share.ranks > 1) {
    of_all_lanes.emplace(step.model.parameters(), 1, nn::LaneTree(step.config.lanes()));
  }
  nn::Gradient& gradient = of_all_lanes ? *of_all_lanes : step.gradient;
  uint32_t first_turn = 0;
  uint32_t& turns = of_all_lanes ? first_turn : step.turns;
  gradient.measure(false);
  FirstBad watch;
  for (size_t s = 0; s < parts.size() && !watch.where(); ++s) {
    ColumnRefs columns{{kTokensColumn, tokens.inputs.data() + s * T}, {kTargetsColumn, tokens.targets.data() + s * T}};
    if (!tokens.positions.empty()) columns.add({kPositionsColumn, tokens.positions.data() + s * T});
    step.model.forward_backward({.columns = columns,
                                 .sequences = 1,
                                 .T = T,
                                 .seed = step.config.train.seed,
                                 .step = at.next_data_step(),
                                 .first_sequence = static_cast<uint32_t>(s),
                                 .turn = {.number = turns++,
                                          .first = parts[s].first,
                                          .last = parts[s].last,
                                          .lane = static_cast<uint32_t>(parts[s].lane)}},
                                {.scale = scale, .gradient = gradient, .watch = &watch}, step.work);
  }
  gradient.join_all();
  return {.weight = first_bad_tensor(step.model.parameters(), step.model.weights().values()), .pass = watch.where()};
}

}  // namespace quern::train
