// Makes tokens that appeared recently less likely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quern {

// Remembers the last `window` tokens of a text, prompt included, and lowers the logits of the distinct ones among them:
// a positive logit is divided by `penalty`, a negative one multiplied. A penalty below 1 makes them more likely; 1
// changes nothing.
class RepeatPenalty {
 public:
  // Allocates all it needs. A window of 0 means all tokens. `penalty` and `window` must have passed check(Sampling).
  RepeatPenalty(float penalty, size_t window, size_t vocabulary);

  bool active() const { return penalty_ != 1.0f; }

  // Adds tokens to the end of the text. Tokens outside the vocabulary take up a place in the window, but have no logit
  // to change. Does not allocate.
  void see(std::span<const int32_t> tokens);
  void see(int32_t token) { see(std::span(&token, 1)); }

  // Returns the first `vocabulary` logits with the penalty applied, valid until the next call; if not active(), the
  // logits themselves. Finite logits stay finite. Linear in the vocabulary, because it copies. Does not allocate.
  std::span<const float> apply(std::span<const float> logits);

 private:
  void count(int32_t token, int change);

  float penalty_;
  size_t next_ = 0;               // where the next token goes in window_, over the oldest one
  std::vector<int32_t> window_;   // a ring; empty for all tokens
  std::vector<uint32_t> counts_;  // of each token in the window; if that is all tokens, 0 or 1
  std::vector<float> penalised_;
};

}  // namespace quern
