// A board network as the evaluator of a search.
#pragma once

#include <cstddef>

#include "nn/models/board.h"
#include "selfplay/evaluator.h"

namespace quern::selfplay {

class NetworkEvaluator final : public Evaluator {
 public:
  // The model must outlive the evaluator; others may use it at the same time. All memory is allocated here.
  explicit NetworkEvaluator(const nn::BoardModel& model);

  void evaluate(size_t count, const float* planes, float* logits, float* outcomes) override;

 private:
  const nn::BoardModel& model_;
  nn::Workspace work_;
};

}  // namespace quern::selfplay
