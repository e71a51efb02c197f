#include "selfplay/network_evaluator.h"

#include "nn/micro_batch.h"

namespace quern::selfplay {

// As many positions at a time as in training: enough rows for the products, few enough for L2.
NetworkEvaluator::NetworkEvaluator(const nn::BoardModel& model)
    : model_(model), work_(model.activations(), {.sequences = nn::sequences_per_micro_batch(model.config().squares)}) {}

void NetworkEvaluator::evaluate(size_t count, const float* planes, float* logits, float* outcomes) {
  model_.evaluate({.columns = {{kPlanesColumn, nullptr, planes}}, .sequences = count, .T = model_.config().squares},
                  logits, outcomes, work_);
}

}  // namespace quern::selfplay
