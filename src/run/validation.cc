#include "run/validation.h"

#include <algorithm>
#include <cmath>

#include "config/history.h"
#include "quern/profile.h"

namespace quern::train {
namespace {

const Region kValidation("validation");

uint64_t max_windows(const RunConfig& config) {
  return config.train.validation_batches == 0 ? UINT64_MAX : config.train.validation_batches * config.train.batch;
}

// 0 to 10^9 batches of 1 to 10^6 sequences do not overflow, but multiplied by the context they could.
uint64_t tokens_of(const RunConfig& config) {
  const uint64_t windows = max_windows(config);
  return windows > (UINT64_MAX - 1) / config.model.context ? UINT64_MAX : windows * config.model.context + 1;
}

}  // namespace

uint64_t validation_tokens(const RunConfig& config) {
  uint64_t tokens = tokens_of(config);
  for (const RunConfig::Change& change : config.history) {
    tokens = std::max(tokens, tokens_of(config_at(config, change.from_step)));
  }
  return tokens;
}

Validation::Validation(const RunConfig& config, const Dataset& dataset) : config_(config) {
  if (dataset.chat) {
    if (dataset.chat->validation) {
      windows_ = std::make_unique<chat::ValidationRows>(*dataset.chat->validation, max_windows(config));
    }
    return;
  }
  if (config.data.validation_fraction == 0) return;
  windows_ = std::make_unique<data::ValidationBatches>(dataset.held_out(), static_cast<uint32_t>(config.model.context),
                                                       max_windows(config));
}

void Validation::measure(Trainer& trainer, RunState& state) const {
  state.validation_loss.reset();
  const uint64_t interval = config_.train.validation_interval;
  const bool with_checkpoint = interval > 0 && config_.is_due(config_.checkpoint.interval, state.step);
  if (!windows_ || !(with_checkpoint || config_.is_due(interval, state.step))) return;
  const Timed timed(kValidation);
  const double loss = trainer.evaluate(*windows_);
  state.validation_loss = loss;
  // A loss that is not finite is not saved, so it must not count as the best in memory either.
  if (!std::isfinite(loss) || (state.best_validation_loss && loss >= *state.best_validation_loss)) return;
  state.best_validation_loss = loss;
  state.best_step = state.step;
}

}  // namespace quern::train
