// The default corpus: small English stories drawn from a grammar of our own, whose entropy is known exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/story_grammar.h"

namespace quern::data {

// Ends every story. It occurs nowhere inside one.
inline constexpr std::string_view kStoryEnd = "\n\n";

// The grammar of kStoryRules. Made on first use; any thread.
const StoryGrammar& story_grammar();

// Story number `index` of the endless corpus `seed`, with kStoryEnd; a pure function of both, so that any part of the
// corpus can be made anywhere. Appends the choices that made it to `choices` if given: alternatives of rules and rows
// of variables, in the order of the text.
void append_story(uint64_t seed, uint64_t index, std::string& out, std::vector<uint32_t>* choices = nullptr);

// Stories 0, 1, 2, ... of the corpus until there are at least `bytes` bytes: whole stories, all ASCII (so a character
// is a byte), and a longer text starts with a shorter one of the same seed.
std::string stories_text(uint64_t seed, uint64_t bytes);

// The lowest expected loss of any model on stories that it has not seen. It is an average over all that the grammar can
// tell: a short sample can be less surprising, and a model that knows its training text by heart has a lower loss
// there.
//
// The text is a sequence of independent stories, so
// its entropy rate is the entropy of a story over its expected length (renewal theorem); for a tokenizer whose tokens
// are bytes or characters, nats_per_byte is the floor of the loss per token. For another tokenizer it is
// nats_per_byte * bytes per token, as measured on the text: decoding gives the text back, so no information is lost.
//
// A model with a context of T tokens comes close to the floor, not down to it. The floor belongs to a reader who knows
// the story from its first letter. A window that starts in the middle of one shows again, at the price of a surprise,
// where in a story it is and what was drawn before (who "she" is, what colour the kite has). By the chain rule the best
// loss, summed over a window, is the floor's plus the mutual information of the window and what came before it. That is
// at most kStoryCutNats: the best loss per byte lies between nats_per_byte and nats_per_byte + kStoryCutNats / bytes in
// a window. That is nothing for windows that start where a story starts, at most 0.057 for 256 bytes, and 0.015 for
// 1,000. Besides, the stories in a finite text surprise more or less than the average: the `surprisal` of
// read_story() gives the floor of the very text.
struct StoriesEntropy {
  double nats_per_story;
  double bytes_per_story;  // with kStoryEnd
  double nats_per_byte;
};
StoriesEntropy stories_entropy();

// Upper bound of what a cut at a random byte hides: 8.7 nats for the place in the grammar and 5.5 for the variables
// that are mentioned again, counted over many stories (the tests count them again), rounded up.
inline constexpr double kStoryCutNats = 14.5;

// Reading a text as a story (without or with kStoryEnd).
struct StoryReading {
  double log_probability;         // natural logarithm, of the story
  std::vector<uint32_t> choices;  // as append_story() gives them
  std::vector<double> surprisal;  // of each byte, in nats, to a reader who knows the bytes before it; sums to -log p
  uint64_t derivations;           // 1: the tests prove that there is never more than one
};

// Nothing when the text is not a story that the grammar can tell. Reads from the left, so the time is proportional to
// the length of the text; any bytes are allowed. Tells whether a model that writes stories has understood them.
std::optional<StoryReading> read_story(std::string_view text);

}  // namespace quern::data
