#include "train/optimizer_settings.h"

namespace quern::train {

quern::Schedule schedule_of(const RunConfig& config) {
  const auto kind = [&] {
    switch (config.optimizer.schedule) {
      case train::Schedule::kCosine:
        return ScheduleKind::kCosine;
      case train::Schedule::kLinear:
        return ScheduleKind::kLinear;
      case train::Schedule::kConstant:
        return ScheduleKind::kConstant;
      case train::Schedule::kWsd:
        return ScheduleKind::kWsd;
    }
    return ScheduleKind::kConstant;
  }();
  return {.kind = kind,
          .rate = config.optimizer.rate,
          .min_rate = config.optimizer.min_rate,
          .warmup = config.optimizer.warmup,
          .steps = config.train.steps,
          .cooldown = config.optimizer.cooldown};
}

OptimizerOptions optimizer_options(const RunConfig& config) {
  const RunConfig::Optimizer& o = config.optimizer;
  return {.kind = o.kind == OptimizerRule::kMuon ? OptimizerKind::kMuon : OptimizerKind::kAdamW,
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .epsilon = static_cast<float>(o.epsilon),
          .weight_decay = static_cast<float>(o.weight_decay),
          .clip = static_cast<float>(o.clip),
          .matrix_rate = o.rate > 0 ? o.matrix_rate / o.rate : 0,
          .momentum = o.momentum,
          .momentum_warmup = o.momentum_warmup};
}

}  // namespace quern::train
