// The default corpus: short English stories generated from a grammar whose entropy is known exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/story_grammar.h"

namespace quern::data {

// Ends every story and never occurs inside one.
inline constexpr std::string_view kStoryEnd = "\n\n";

// The grammar of kStoryRules. Created on first use; thread-safe.
const StoryGrammar& story_grammar();

// Appends story number `index` of the infinite corpus `seed`, with kStoryEnd. It is a pure function of both, so any
// part of the corpus can be generated independently. If `choices` is given, appends the choices that produced the
// story: alternatives of rules and rows of variables, in the order of the text.
void append_story(uint64_t seed, uint64_t index, std::string& out, std::vector<uint32_t>* choices = nullptr);

// Stories 0, 1, 2, ... of the corpus until there are at least `bytes` bytes. Stories are complete and all ASCII (so a
// character is a byte), and a shorter text is a prefix of a longer one with the same seed.
std::string stories_text(uint64_t seed, uint64_t bytes);

// The lowest expected loss of any model on unseen stories. It is an average over all stories of the grammar: a short
// sample can be less surprising, and a model that has memorized its training text has a lower loss on it.
//
// The text is a sequence of independent stories, so its entropy rate is the entropy of a story divided by its expected
// length (renewal theorem). For a tokenizer whose tokens are bytes or characters, nats_per_byte is the lower bound
// ("floor") of the loss per token. For other tokenizers it is nats_per_byte * bytes per token, as measured on the text:
// decoding restores the text, so no information is lost.
//
// A model with a context of T tokens approaches the floor but does not reach it. The floor applies to a reader who
// knows the story from its first letter. A window that starts in the middle of a story reveals again, as additional
// surprise, where in the story it is and what was drawn before (who "she" is, what colour the kite has). By the chain
// rule, the best loss summed over a window is that of the floor plus the mutual information between the window and the
// preceding text. That is at most kStoryCutNats, so the best loss per byte lies between nats_per_byte and nats_per_byte
// + kStoryCutNats / bytes in a window. The difference is 0 for windows that start where a story starts, at most 0.057
// for 256 bytes, and 0.015 for 1,000. In addition, the stories of a finite text are more or less surprising than
// average; the `surprisal` of read_story() gives the floor for that specific text.
struct StoriesEntropy {
  double nats_per_story;
  double bytes_per_story;  // including kStoryEnd
  double nats_per_byte;
};
StoriesEntropy stories_entropy();

// Upper bound of the information hidden by a cut at a random byte: 8.7 nats for the position in the grammar and 5.5 for
// the variables that are mentioned again, measured over many stories (and again by the tests), rounded up.
inline constexpr double kStoryCutNats = 14.5;

// The result of parsing a text as a story (with or without kStoryEnd).
struct StoryReading {
  double log_probability;         // natural logarithm, of the story
  std::vector<uint32_t> choices;  // as from append_story()
  std::vector<double> surprisal;  // of each byte given the preceding ones, in nats; sums to -log p
  uint64_t derivations;           // 1: the tests prove that there is never more than one
};

// Parses a text of any bytes; nullopt if it is not a story of the grammar. Reads from the left, so the time is
// proportional to the length of the text. Shows whether a model that writes stories has learned the grammar.
std::optional<StoryReading> read_story(std::string_view text);

}  // namespace quern::data
