#include "train/trainer.h"

#include <algorithm>
#include <chrono>

#include "train/evaluate.h"

namespace quern::train {
namespace {

quern::Schedule schedule_of(const RunConfig& config) {
  const auto kind = [&] {
    switch (config.optimizer.schedule) {
      case train::Schedule::kCosine:
        return ScheduleKind::kCosine;
      case train::Schedule::kLinear:
        return ScheduleKind::kLinear;
      case train::Schedule::kConstant:
        return ScheduleKind::kConstant;
    }
    return ScheduleKind::kConstant;
  }();
  return {.kind = kind,
          .rate = config.optimizer.rate,
          .min_rate = config.optimizer.min_rate,
          .warmup = config.optimizer.warmup,
          .steps = config.train.steps};
}

OptimizerOptions optimizer_options(const RunConfig& config) {
  return {.beta1 = static_cast<float>(config.optimizer.beta1),
          .beta2 = static_cast<float>(config.optimizer.beta2),
          .epsilon = static_cast<float>(config.optimizer.epsilon),
          .weight_decay = static_cast<float>(config.optimizer.weight_decay),
          .clip = static_cast<float>(config.optimizer.clip)};
}

size_t sequences_per_step(const RunConfig& config) { return config.train.batch * config.train.accumulation; }

// Sequences of one micro-batch: about 256 tokens, and no more than a step has.
size_t micro_sequences(const RunConfig& config) {
  return std::min(sequences_per_micro_batch(config.model.context), sequences_per_step(config));
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

ModelConfig model_config(const RunConfig& config, uint32_t vocabulary) {
  return {.layers = config.model.layers,
          .heads = config.model.heads,
          .width = config.model.width,
          .context = config.model.context,
          .vocabulary = vocabulary,
          .dropout = static_cast<float>(config.model.dropout)};
}

bool worth_packing(const RunConfig& config) {
  return sequences_per_step(config) / micro_sequences(config) >= kPackFrom;
}

Trainer::Trainer(const RunConfig& config, Gpt& model, const data::TrainingBatches& batches)
    : config_(config),
      model_(model),
      batches_(batches),
      schedule_(schedule_of(config)),
      optimizer_(model.layout(), optimizer_options(config)),
      gradient_(model.layout()),
      work_(model.config(), micro_sequences(config), true),
      inputs_(micro_sequences(config) * config.model.context),
      targets_(inputs_.size()) {}

MicroBatch Trainer::micro_batch(uint32_t first, size_t sequences) const {
  return {.tokens = inputs_.data(),
          .targets = targets_.data(),
          .sequences = sequences,
          .T = config_.model.context,
          .seed = config_.train.seed,
          .step = static_cast<uint32_t>(steps_done_),
          .first_sequence = first};
}

StepReport Trainer::step() {
  const double start = now();
  const size_t total = sequences_per_step(config_), at_once = work_.sequences();
  const uint64_t tokens = total * config_.model.context;
  const float scale = static_cast<float>(1.0 / static_cast<double>(tokens));
  gradient_.clear();
  double loss = 0;
  for (size_t first = 0; first < total; first += at_once) {
    const size_t n = std::min(at_once, total - first);
    batches_.fill(static_cast<uint32_t>(steps_done_), static_cast<uint32_t>(first), static_cast<uint32_t>(n),
                  inputs_.data(), targets_.data());
    loss += model_.forward_backward(micro_batch(static_cast<uint32_t>(first), n), scale, gradient_, work_);
  }
  gradient_.join();
  ++steps_done_;
  const double rate = schedule_.at(steps_done_);
  const UpdateReport update = optimizer_.update(model_.weights().values(), gradient_.values(), rate, steps_done_);
  model_.weights().repack();
  return {.step = steps_done_,
          .loss = loss / static_cast<double>(tokens),
          .rate = rate,
          .gradient_norm = update.gradient_norm,
          .finite = update.finite,
          .tokens = tokens,
          .seconds = now() - start};
}

double Trainer::evaluate(const data::ValidationBatches& windows) {
  return train::evaluate(model_, windows, work_, nullptr).loss;
}

void Trainer::resume_after(uint64_t steps) {
  steps_done_ = steps;
  model_.weights().repack();
}

}  // namespace quern::train
