// What search asks of a network, or of anything that takes its place.
#pragma once

#include <cstddef>

namespace quern::selfplay {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // Evaluates `count` positions: reads planes (count, planes, rows, columns), and writes logits (count, actions), of
  // all actions whether legal or not, and outcomes (count, 3): the probabilities that the player to move wins, draws
  // and loses. The result for a position does not depend on the others. One thread at a time.
  virtual void evaluate(size_t count, const float* planes, float* logits, float* outcomes) = 0;
};

}  // namespace quern::selfplay
