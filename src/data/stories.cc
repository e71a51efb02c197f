#include "data/stories.h"

#include <cassert>

#include "core/philox.h"
#include "data/story_rules.h"

namespace quern::data {
namespace {

using Part = StoryGrammar::Part;

// Random numbers for one story: two choices per Philox block.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t index)
      : stream_{.seed = seed,
                .purpose = Purpose::kStories,
                .layer = 0,
                .step = static_cast<uint32_t>(index >> 32),
                .sequence = static_cast<uint32_t>(index)} {}

  // 0 ... bound - 1; deviates from uniform by less than bound / 2^64.
  uint64_t below(uint64_t bound) {
    if (used_ % 2 == 0) words_ = stream_.block(used_ / 2);
    const size_t half = size_t{2} * (used_++ % 2);
    const uint64_t bits = static_cast<uint64_t>(words_[half + 1]) << 32 | words_[half];
    return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * bound >> 64);
  }

 private:
  RandomStream stream_;
  uint32_t used_ = 0;
  PhiloxBlock words_ = {};
};

class Teller {
 public:
  Teller(const StoryGrammar& grammar, Dice dice, std::string& out, std::vector<uint32_t>* choices)
      : grammar_(grammar), dice_(dice), out_(out), choices_(choices), rows_(grammar.variables().size()) {}

  void tell_rule(size_t index) {
    const StoryGrammar::Rule& rule = grammar_.rules()[index];
    uint64_t ticket = dice_.below(rule.weight);
    size_t chosen = 0;
    while (ticket >= rule.alternatives[chosen].weight) ticket -= rule.alternatives[chosen++].weight;
    record(chosen);
    for (const Part& part : rule.alternatives[chosen].parts) tell_part(part);
  }

 private:
  void tell_part(const Part& part) {
    switch (part.kind) {
      case Part::Kind::kText:
        out_ += part.text;
        return;
      case Part::Kind::kRule:
        return tell_rule(part.index);
      case Part::Kind::kDraw:
        draw(part.index);
        [[fallthrough]];
      case Part::Kind::kMention:
        out_ += grammar_.cell(part, rows_[part.index]);
        return;
    }
  }

  // Rows after the excluded one move down by one.
  void draw(size_t index) {
    const StoryGrammar::Variable& variable = grammar_.variables()[index];
    size_t row = dice_.below(grammar_.choices(index));
    if (variable.other_than != StoryGrammar::kNone && row >= rows_[variable.other_than]) ++row;
    rows_[index] = row;
    record(row);
  }

  void record(size_t choice) {
    if (choices_ != nullptr) choices_->push_back(static_cast<uint32_t>(choice));
  }

  const StoryGrammar& grammar_;
  Dice dice_;
  std::string& out_;
  std::vector<uint32_t>* choices_;
  std::vector<size_t> rows_;
};

}  // namespace

const StoryGrammar& story_grammar() {
  static const StoryGrammar grammar(kStoryRules);
  return grammar;
}

void append_story(uint64_t seed, uint64_t index, std::string& out, std::vector<uint32_t>* choices) {
  Teller(story_grammar(), Dice(seed, index), out, choices).tell_rule(0);
  out += kStoryEnd;
}

std::string stories_text(uint64_t seed, uint64_t bytes) {
  std::string text;
  text.reserve(bytes + 2000);  // the longest story is shorter, so the text is never reallocated
  for (uint64_t index = 0; text.size() < bytes; ++index) append_story(seed, index, text);
  return text;
}

StoriesEntropy stories_entropy() {
  const double nats = story_grammar().entropy_nats();
  const double bytes = story_grammar().expected_bytes() + static_cast<double>(kStoryEnd.size());
  return {nats, bytes, nats / bytes};
}

}  // namespace quern::data
