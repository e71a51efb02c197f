#include "data/stories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/files.h"

namespace quern::data {
namespace {

std::string story(uint64_t seed, uint64_t index) {
  std::string text;
  append_story(seed, index, text);
  return text;
}

struct Mean {
  double sum = 0, squares = 0, count = 0;
  void add(double x) { sum += x, squares += x * x, ++count; }
  double value() const { return sum / count; }
  double error() const { return std::sqrt((squares / count - value() * value()) / count); }
};

TEST(Stories, DependOnSeedAndIndexAlone) {
  const std::string text = stories_text(7, 10000);
  EXPECT_EQ(stories_text(7, 10000), text);
  EXPECT_TRUE(stories_text(7, 20000).starts_with(text));
  EXPECT_TRUE(text.starts_with(story(7, 0) + story(7, 1)));
  EXPECT_NE(story(7, 0), story(8, 0));
  EXPECT_NE(story(7, 0), story(7, uint64_t{1} << 32));
}

// The corpus of a seed must never change: losses and hashes of runs on it are compared.
TEST(Stories, AreTheSameOnEveryMachine) {
  EXPECT_EQ(
      story(0, 0),
      "Long ago, on a small farm, there lived a clever child named Sam. One rainy evening, Sam took a white hat to "
      "the river. On the way there it fell out of his bag. Sam sat down on a stone and began to cry. Then a bear "
      "looked out from behind a fence. \"I know where your hat is,\" said the bear. \"Grumble! Come with me!\" "
      "They looked and looked, and at last they saw the white hat in a deep cave. They sat down on a stump and "
      "shared some honey. And on every rainy evening after that, the bear came to visit Sam.\n\n");
}

TEST(Stories, TextHasCompleteStoriesAndAboutTheRequestedLength) {
  for (const uint64_t bytes : {1u, 100u, 5000u, 200000u}) {
    const std::string text = stories_text(1, bytes);
    EXPECT_GE(text.size(), bytes);
    EXPECT_LT(text.size(), bytes + 1000);
    EXPECT_TRUE(text.ends_with(kStoryEnd));
  }
  EXPECT_EQ(stories_text(1, 0), "");
}

TEST(Stories, ReadingRecoversTheChoices) {
  for (uint64_t index = 0; index < 5000; ++index) {
    std::string text;
    std::vector<uint32_t> choices;
    append_story(3, index, text, &choices);
    const std::optional<StoryReading> reading = read_story(text);
    ASSERT_TRUE(reading.has_value()) << text;
    EXPECT_EQ(reading->derivations, 1u) << text;
    EXPECT_EQ(reading->choices, choices) << text;
    EXPECT_EQ(text.find(kStoryEnd), text.size() - kStoryEnd.size());
  }
}

// The closed forms against 40,000 stories: within four standard errors, which are 0.06 % of the entropy.
TEST(Stories, EntropyAndLengthAgreeWithTheSample) {
  const StoriesEntropy exact = stories_entropy();
  Mean nats, bytes;
  for (uint64_t index = 0; index < 40000; ++index) {
    const std::string text = story(11, index);
    nats.add(-read_story(text)->log_probability);
    bytes.add(static_cast<double>(text.size()));
  }
  EXPECT_NEAR(nats.value(), exact.nats_per_story, 4 * nats.error());
  EXPECT_NEAR(bytes.value(), exact.bytes_per_story, 4 * bytes.error());
  EXPECT_LT(nats.error(), 0.001 * exact.nats_per_story);
  EXPECT_DOUBLE_EQ(exact.nats_per_byte, exact.nats_per_story / exact.bytes_per_story);
  RecordProperty("nats_per_story", std::to_string(nats.value()));
}

TEST(Stories, SurprisalOfBytesSumsToThatOfTheStory) {
  for (uint64_t index = 0; index < 1000; ++index) {
    const std::string text = story(12, index);
    const StoryReading reading = *read_story(text);
    ASSERT_EQ(reading.surprisal.size(), text.size());
    double sum = 0;
    for (const double nats : reading.surprisal) {
      EXPECT_GE(nats, 0.0);
      sum += nats;
    }
    EXPECT_NEAR(sum, -reading.log_probability, 1e-9);
  }
}

// By hand from the rules: a story starts with "Once" in 4 of 10 cases and with a name in 3, of which one of 16 is Otto.
TEST(Stories, SurprisalOfAByteMatchesEnumeration) {
  uint64_t index = 0;
  while (!story(1, index).starts_with("Once")) ++index;
  const std::vector<double> nats = read_story(story(1, index))->surprisal;
  EXPECT_NEAR(nats[0], -std::log(0.4 + 0.3 / 16), 1e-12);
  EXPECT_NEAR(nats[1], -std::log(0.4 / (0.4 + 0.3 / 16)), 1e-12);
  EXPECT_EQ(nats[2], 0.0);
  EXPECT_EQ(nats.back(), 0.0);
}

// Unknown to a window that starts at a random byte: which part of the grammar it is in, and the rows of the
// variables that the rest of the story mentions again.
class Cuts {
 public:
  void add(uint64_t index) {
    std::string text;
    choices_.clear();
    append_story(99, index, text, &choices_);
    next_ = 0;
    pieces_.clear();
    walk(0, 1);
    pieces_.push_back({0, kStoryEnd.size(), StoryGrammar::kNone, false});
    count();
  }
  double nats() const {
    double entropy = 0;
    for (const auto& [place, count] : places_) entropy -= count / bytes_ * std::log(count / bytes_);
    return entropy + rows_nats_ / bytes_;
  }

 private:
  using Part = StoryGrammar::Part;
  struct Piece {
    uint64_t place;
    size_t bytes;
    size_t variable;
    bool draw;
  };

  void walk(size_t rule, uint64_t path) {
    const std::vector<Part>& parts = grammar_.rules()[rule].alternatives[choices_[next_++]].parts;
    for (const Part& part : parts) {
      const uint64_t place = (path ^ reinterpret_cast<uintptr_t>(&part)) * 0x9E3779B97F4A7C15u;
      if (part.kind == Part::Kind::kRule) {
        walk(part.index, place);
      } else if (part.kind == Part::Kind::kText) {
        pieces_.push_back({place, part.text.size(), StoryGrammar::kNone, false});
      } else {
        const bool draw = part.kind == Part::Kind::kDraw;
        if (draw) rows_[part.index] = choices_[next_++];
        pieces_.push_back({place, grammar_.cell(part, rows_[part.index]).size(), part.index, draw});
      }
    }
  }

  void count() {
    std::set<size_t> later;
    std::reverse(pieces_.begin(), pieces_.end());
    for (const Piece& piece : pieces_) {
      if (piece.variable != StoryGrammar::kNone) later.insert(piece.variable);
      for (size_t offset = 0; offset < piece.bytes; ++offset) {
        if (piece.draw && offset == 0) continue;  // counted below: nothing of it was seen
        add_byte(piece.place + offset * 31, later);
      }
      if (!piece.draw) continue;
      later.erase(piece.variable);
      add_byte(piece.place, later);
    }
  }

  void add_byte(uint64_t place, const std::set<size_t>& later) {
    ++places_[place];
    ++bytes_;
    for (const size_t v : later) rows_nats_ += std::log(static_cast<double>(grammar_.choices(v)));
  }

  const StoryGrammar& grammar_ = story_grammar();
  std::vector<uint32_t> choices_;
  size_t next_ = 0;
  std::vector<size_t> rows_ = std::vector<size_t>(grammar_.variables().size());
  std::vector<Piece> pieces_;
  std::map<uint64_t, double> places_;
  double bytes_ = 0;
  double rows_nats_ = 0;
};

TEST(Stories, TruncationHidesAtMostTheStatedBits) {
  Cuts cuts;
  for (uint64_t index = 0; index < 5000; ++index) cuts.add(index);
  EXPECT_LE(cuts.nats(), kStoryCutNats);
  EXPECT_GE(cuts.nats(), kStoryCutNats - 0.5);
}

// There is room: two long corpora share next to no story.
TEST(Stories, RarelyRepeat) {
  std::set<std::string> stories;
  for (uint64_t index = 0; index < 10000; ++index) stories.insert(story(1, index));
  EXPECT_GT(stories.size(), 9990u);
}

TEST(Stories, AreConsistentInNamesPronounsAndThings) {
  const std::string text = story(0, 0);
  EXPECT_TRUE(read_story(text).has_value());
  constexpr std::string_view kGood =
      "Ben was a kind boy who lived by the sea. One rainy day, Ben threw a coin into the well. \"I wish for a red "
      "kite,\" "
      "he said. Then a goat climbed out of the well and gave it to him. He flew it every day. From that day on, Ben "
      "and "
      "the goat were good friends.";
  EXPECT_TRUE(read_story(kGood).has_value());
  for (const auto& [from, to] : {std::pair{"him", "her"},
                                 {"flew", "rang"},
                                 {"the goat were", "the owl were"},
                                 {"boy", "girl"},
                                 {", Ben and", ", Max and"},
                                 {"goat climbed", "gaot climbed"},
                                 {"friends.", "friends"}}) {
    std::string bad(kGood);
    bad.replace(bad.find(from), std::string_view(from).size(), to);
    EXPECT_FALSE(read_story(bad).has_value()) << bad;
  }
}

TEST(Stories, MutatedStoriesAreReadOrRejected) {
  std::mt19937 random(5);
  int read = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const std::string text = test::mutated(story(2, i % 100), random);
    const std::optional<StoryReading> reading = read_story(text);
    if (!reading) continue;
    ++read;
    EXPECT_EQ(reading->derivations, 1u) << text;
  }
  EXPECT_LT(read, 1000);
}

}  // namespace
}  // namespace quern::data
