// Samples a token from logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quern {

// As in llama.cpp: long enough for loops of a few sentences, short enough that common words recover.
inline constexpr size_t kDefaultRepeatWindow = 64;
inline constexpr size_t kMaxRepeatWindow = size_t{1} << 20;

// In the order in which they apply: repeat_penalty, temperature, top_k, top_p, min_p.
struct Sampling {
  float temperature = 1.0f;  // logits are divided by it; 0 selects the most likely token
  int64_t top_k = 0;         // only the k most likely tokens; 0, or more than the vocabulary, for all
  float top_p = 1.0f;        // in (0, 1]: of those, the smallest set of most likely tokens whose probabilities reach
                             // this sum
  float min_p = 0.0f;  // in [0, 1]: of those, the tokens at least this many times as likely as the most likely one
  uint64_t seed = 0;
  uint32_t sample = 0;  // number of the text: each has its own random numbers for the same seed

  // Applied to the logits before all of the above (repeat_penalty.h).
  float repeat_penalty = 1.0f;                  // more than 0; 1 for none
  size_t repeat_window = kDefaultRepeatWindow;  // number of last tokens that count, prompt included; 0 for all
};

// Throws Error with the option, the expected and the actual value, also for a window that is set without a penalty.
void check(const Sampling& sampling);

// Among tokens with equal logits, the one with the lower id counts as more likely, so that the cut is well defined.
class Sampler {
 public:
  // Checks the options. Only the tokens 0 ... vocabulary - 1 are ever selected: a token table may have more rows, which
  // were never trained on any text.
  Sampler(const Sampling& sampling, size_t vocabulary);

  // Selects token number `index` of a text from the first `vocabulary` logits; there may be more. The caller has
  // applied the repeat penalty. A function of the options, the logits and the index alone: the same seed gives the same
  // text. Linear in the vocabulary; sorts only as much as top-p needs. Throws Error if a logit is NaN or +infinity, or
  // if all are -infinity; a token with -infinity is never selected. Does not allocate.
  int32_t pick(std::span<const float> logits, uint32_t index);

 private:
  struct Candidate {
    float logit;
    int32_t token;
    double weight;  // probability, relative to that of the most likely token
  };
  static bool likelier(const Candidate& a, const Candidate& b);
  std::span<Candidate> top_k(std::span<const float> logits);  // without weights
  std::span<Candidate> all_of(std::span<const float> logits);
  std::span<Candidate> top_of(std::span<const float> logits, size_t k);
  std::span<Candidate> top_p(std::span<Candidate> candidates) const;
  std::span<Candidate> min_p(std::span<Candidate> candidates) const;
  static std::span<Candidate> at_least(double weight, std::span<Candidate> candidates);
  int32_t draw(std::span<const Candidate> candidates, uint32_t index) const;

  Sampling sampling_;
  std::vector<Candidate> candidates_;
};

}  // namespace quern
