#include "diagnose/rerun_step.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/tensor_refs.h"
#include "kernels/target.h"
#include "nn/models/language_model.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

// Returns the tokens of the recorded step for every request.
class RecordedBatches : public data::BatchSource {
 public:
  RecordedBatches(const StepTokens& tokens, size_t context) : tokens_(tokens), context_(context) {}

  std::vector<ColumnSpec> columns() const override {
    std::vector<ColumnSpec> columns = text_columns(context_);
    if (!tokens_.positions.empty()) columns.push_back({kPositionsColumn, ColumnType::kInt32, context_});
    return columns;
  }
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override {
    return std::make_unique<Reader>(*this);
  }

 private:
  class Reader final : public data::BatchReader {
   public:
    explicit Reader(const RecordedBatches& source) : source_(source) {}
    void read(data::Batch& batch) override {
      const StepTokens& tokens = source_.tokens_;
      const size_t n = batch.sequences * source_.context_, at = batch.first * source_.context_;
      std::copy_n(tokens.inputs.data() + at, n, batch.columns.ints(kTokensColumn).data());
      std::copy_n(tokens.targets.data() + at, n, batch.columns.ints(kTargetsColumn).data());
      if (!tokens.positions.empty()) {
        std::copy_n(tokens.positions.data() + at, n, batch.columns.ints(kPositionsColumn).data());
      }
      batch.counted_targets = tokens.counted_targets();
    }

   private:
    const RecordedBatches& source_;
  };

  const StepTokens& tokens_;
  size_t context_;
};

std::vector<SequenceLoss> sorted_losses(std::span<const double> sums, const StepTokens& tokens, uint64_t context) {
  std::vector<SequenceLoss> losses;
  for (const double sum : sums) {
    losses.push_back({.sequence = losses.size(), .loss = tokens.mean_loss(losses.size(), context, sum)});
  }
  const auto rank = [](double loss) { return std::isnan(loss) ? INFINITY : loss; };
  std::stable_sort(losses.begin(), losses.end(),
                   [&](const SequenceLoss& a, const SequenceLoss& b) { return rank(a.loss) > rank(b.loss); });
  return losses;
}

}  // namespace

RerunStep rerun_step(const RecordedIncident& recorded, size_t threads) {
  RunConfig config = recorded.config;
  config.train.threads = threads;
  const Plan plan = make_plan(config, recorded.vocabulary);
  const auto model = nn::make_language_model(model_config(config, recorded.vocabulary), plan.packed);
  const RecordedBatches batches(recorded.tokens, config.model.context);
  RunState state = recorded.incident.before;
  Trainer trainer(config, plan, *model, batches, state);
  recorded.checkpoint.load(
      {checkpoint::weight_refs(*model), checkpoint::optimizer_refs(model->parameters(), trainer.optimizer())});
  if (recorded.base) recorded.base->load({checkpoint::base_refs(*model), {}});
  const Incident& was = recorded.incident;
  trainer.resume();
  RerunStep result{.found = was, .cut = plan.cut};
  Incident& now = result.found;
  now.findings = examine(trainer.context(), recorded.tokens, was.before);  // first: a step may update the weights
  const StepReport report = trainer.step();
  now.loss = report.loss;
  now.gradient_norm = report.gradient_norm;
  now.gradient_hash = gradient_hash(model->parameters(), trainer.context().gradient.values(), was.before.loss_scale);
  now.target = kernels::current_target().name;
  result.losses = sorted_losses(trainer.context().losses, recorded.tokens, config.model.context);
  result.same = number_text(now.loss) == number_text(was.loss) &&
                number_text(now.gradient_norm) == number_text(was.gradient_norm) &&
                now.gradient_hash == was.gradient_hash;
  return result;
}

}  // namespace quern::train
