#include "optim/adamw.h"

namespace quern {
namespace {

const Region kAdamW("AdamW", Unit::kBytes);
// Per weight: reads gradient, value and moments; writes value and moments.
constexpr double kBytes = 7 * sizeof(float);

}  // namespace

std::vector<StateSpec> AdamW::states_of() {
  const auto all = [](const nn::Parameter&) { return true; };
  return {{"m", all}, {"v", all}};
}

kernels::AdamW adamw_step(const OptimizerOptions& options, float rate, float gradient_scale, uint64_t update) {
  return {.rate = rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .epsilon = options.epsilon,
          .gradient_scale = gradient_scale,
          .step = static_cast<int64_t>(update)};
}

UnitWork adamw_work(size_t n) { return {&kAdamW, kBytes * static_cast<double>(n)}; }

void AdamW::prepare(const Update& update) {
  step_ = adamw_step(options(), update.rate, update.gradient_scale, update.number);
}

void AdamW::apply(const UpdatePiece& piece) {
  const nn::Segment& segment = piece.segment;
  kernels::AdamW step = step_;
  step.weight_decay = segment.decay ? options().weight_decay : 0.0f;
  kernels::adamw(step, piece.weights, piece.gradient, state(0, segment, piece.offset), state(1, segment, piece.offset),
                 piece.n);
}

UnitWork AdamW::work(const UpdateUnit& unit) const { return adamw_work(size_of(unit)); }

}  // namespace quern
