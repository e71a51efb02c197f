// From what an Evaluator writes to what a search takes.
#pragma once

#include <span>

#include "selfplay/wdl.h"

namespace quern::selfplay {

// Writes the softmax of the logits of these actions, which must not be none: priors[i] is that of actions[i]. The same
// bits on every CPU. Error if one of them is not finite.
void write_priors(std::span<const float> logits, std::span<const games::Action> actions, std::span<float> priors);

// Reads (3): win, draw, loss. Error unless they are probabilities: finite, from 0 to 1, with a sum of 1 within 0.001.
Wdl read_outcome(std::span<const float> outcome);

}  // namespace quern::selfplay
