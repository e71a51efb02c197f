// From logits to a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quern {

struct Sampling {
  float temperature = 1.0f;  // logits are divided by it; 0 takes the likeliest token
  int64_t top_k = 0;         // only the k likeliest tokens; 0 for all, more than there are is all
  float top_p = 1.0f;        // in (0, 1]: of those, the fewest likeliest whose probabilities add up to it
  uint64_t seed = 0;
};

// Throws Error that names the option, what is expected and what was found.
void check(const Sampling& sampling);

// Of tokens with equal logits the one with the lower id counts as likelier, so what is cut is defined.
class Sampler {
 public:
  // Checks the options. Only the tokens 0 ... vocabulary - 1 are ever taken: a token table may have more rows, which no
  // text has taught anything.
  Sampler(const Sampling& sampling, size_t vocabulary);

  // The token number `index` of a text, by the first `vocabulary` of the logits, of which there may be more. A function
  // of the options, the logits and the index alone: the same seed gives the same text. Linear in the vocabulary, and
  // sorts only as much as top-p needs. Throws Error when a logit is NaN or +infinity, or all are -infinity; a token
  // with -infinity is never taken. Allocates nothing.
  int32_t pick(std::span<const float> logits, uint32_t index);

 private:
  struct Candidate {
    float logit;
    int32_t token;
    double weight;  // probability, not divided by their sum
  };
  static bool likelier(const Candidate& a, const Candidate& b);
  std::span<Candidate> top_k(std::span<Candidate> candidates) const;
  std::span<Candidate> top_p(std::span<Candidate> candidates) const;
  int32_t draw(std::span<const Candidate> candidates, uint32_t index) const;

  Sampling sampling_;
  std::vector<Candidate> candidates_;
};

}  // namespace quern
