// Weights, as self-play and matches use them.
#pragma once

#include <cstddef>
#include <memory>

#include "selfplay/evaluator.h"

namespace quern::selfplay {

// Immutable; any thread.
class Model {
 public:
  virtual ~Model() = default;

  // An evaluator for batches of at most `positions`, with these weights. The caller keeps the model for as long.
  virtual std::unique_ptr<Evaluator> make_evaluator(size_t positions) const = 0;
};

}  // namespace quern::selfplay
