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

  std::vector<ColumnSpec> columns() const override { return text_columns(context_); }
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override {
    return std::make_unique<Reader>(*this);
  }

 private:
  class Reader final : public data::BatchReader {
   public:
    explicit Reader(const RecordedBatches& source) : source_(source) {}
    void read(data::Batch& batch) override {
      const size_t n = batch.sequences * source_.context_, at = batch.first * source_.context_;
      std::copy_n(source_.tokens_.inputs.data() + at, n, batch.columns.ints(kTokensColumn).data());
      std::copy_n(source_.tokens_.targets.data() + at, n, batch.columns.ints(kTargetsColumn).data());
      batch.counted_targets = source_.tokens_.counted_targets();
    }

   private:
    const RecordedBatches& source_;
  };

  const StepTokens& tokens_;
  size_t context_;
};

std::vector<SequenceLoss> sorted_losses(std::span<const double> sums, uint64_t context) {
  std::vector<SequenceLoss> losses;
  for (const double sum : sums) {
    losses.push_back({.sequence = losses.size(), .loss = sum / static_cast<double>(context)});
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
  recorded.checkpoint.load({checkpoint::tensor_refs(model->parameters(), model->weights().values()),
                            checkpoint::optimizer_refs(model->parameters(), trainer.optimizer())});
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
  result.losses = sorted_losses(trainer.context().losses, config.model.context);
  result.same = number_text(now.loss) == number_text(was.loss) &&
                number_text(now.gradient_norm) == number_text(was.gradient_norm) &&
                now.gradient_hash == was.gradient_hash;
  return result;
}

}  // namespace quern::train
