#include "data/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/byte_alphabet.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using test::error_of;
using test::trained;

std::vector<std::string> learned(const BpeTokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (int32_t id = 256; id < tokenizer.vocabulary_size(); ++id) tokens.emplace_back(tokenizer.bytes_of(id));
  return tokens;
}

// The words and counts of Sennrich et al. 2016, who introduced BPE. "es" is there 9 times; "lo" and "ow" 7 times, and l
// is smaller than o; "ew", "ne" and "w"+"est" 6 times, and e is the smallest; "n"+"ew" and "ew"+"est" 6 times.
TEST(BpeTrainer, LearnsTheExampleOfThePaper) {
  std::string text;
  for (const auto& [word, count] : {std::pair("low", 5), {"lower", 2}, {"newest", 6}, {"widest", 3}}) {
    for (int i = 0; i < count; ++i) text += std::string(word) + "\n";
  }
  const auto tokenizer = trained(text, {.vocabulary_size = 256 + 7, .added_tokens = {}});
  EXPECT_EQ(learned(*tokenizer), (std::vector<std::string>{"es", "est", "lo", "low", "ew", "new", "newest"}));
}

// Counts every pair anew for each merge.
std::vector<Merge> trained_naively(const std::vector<std::string>& words, size_t merges) {
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::string> tokens;
  for (const uint8_t byte : bytes_in_alphabet_order()) tokens.emplace_back(1, static_cast<char>(byte));
  for (const std::string& word : words) {
    texts.emplace_back();
    for (const char byte : word) {
      texts.back().push_back(static_cast<int32_t>(std::ranges::find(tokens, std::string(1, byte)) - tokens.begin()));
    }
  }
  std::vector<Merge> learned;
  while (learned.size() < merges) {
    std::map<std::pair<int32_t, int32_t>, int> counts;
    for (const auto& text : texts) {
      for (size_t i = 0; i + 1 < text.size(); ++i) ++counts[{text[i], text[i + 1]}];
    }
    const auto best =
        std::ranges::max_element(counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < 2) break;
    const auto [left, right] = best->first;
    const std::string joined = tokens[static_cast<size_t>(left)] + tokens[static_cast<size_t>(right)];
    const auto known = std::ranges::find(tokens, joined);
    const auto result = static_cast<int32_t>(known - tokens.begin());
    if (known == tokens.end()) tokens.push_back(joined);
    learned.push_back({left, right, result});
    for (auto& text : texts) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < text.size(); ++i) {
        const bool here = i + 1 < text.size() && text[i] == left && text[i + 1] == right;
        merged.push_back(here ? result : text[i]);
        if (here) ++i;
      }
      text = merged;
    }
  }
  return learned;
}

TEST(BpeTrainer, MatchesTheNaiveTwin) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const std::string letters = seed % 3 == 0 ? "ab" : seed % 3 == 1 ? "abc'1" : "abcdefgh!";
    const std::string text = test::random_words(150, letters, seed);
    std::vector<std::string> words;
    Pretokenizer pretokenizer;
    pretokenizer.start(text);
    for (std::string_view piece; pretokenizer.next(piece);) words.emplace_back(piece);
    const auto expected = trained_naively(words, 100);
    const auto tokenizer = trained(text, {.vocabulary_size = 10000, .added_tokens = {}});
    ASSERT_GE(expected.size(), 30u);
    ASSERT_EQ(std::min(tokenizer->merges().size(), size_t{100}), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(tokenizer->merges()[i], expected[i]) << "seed " << seed << ", merge " << i;
    }
  }
}

TEST(BpeTrainer, OrderOfTheTextsDoesNotMatter) {
  const std::string one = test::random_words(2000, "etaoin", 1);
  const std::string two = test::random_words(2000, "shrdlu", 2);
  BpeTrainer forward, backward;
  forward.add(one), forward.add(two);
  backward.add(two), backward.add(one);
  const BpeTrainerOptions options{.vocabulary_size = 900, .added_tokens = {"<|endoftext|>"}};
  const std::string json = forward.train(options)->to_json();
  EXPECT_EQ(backward.train(options)->to_json(), json);
  EXPECT_EQ(forward.train(options)->to_json(), json);
}

TEST(BpeTrainer, AddedTokensGetTheLastIds) {
  const auto tokenizer = trained("abab abab", {.vocabulary_size = 259, .added_tokens = {"<|endoftext|>"}});
  EXPECT_EQ(learned(*tokenizer), (std::vector<std::string>{"ab", "abab", "<|endoftext|>"}));
  EXPECT_EQ(tokenizer->end_of_text(), 258);
}

TEST(BpeTrainer, EndOfTextIsTheLastTokenOfTheRequestedVocabulary) {
  const auto tokenizer = trained("abab abab", with_end_of_text(258));
  EXPECT_EQ(learned(*tokenizer), (std::vector<std::string>{"ab", "<|endoftext|>"}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 258);
  EXPECT_EQ(tokenizer->end_of_text(), 257);
  EXPECT_TRUE(tokenizer->added_tokens().front().special);
  EXPECT_THROW(trained("a", with_end_of_text(256)), Error);
}

TEST(BpeTrainer, StopsWhenNoPairIsFrequentEnough) {
  EXPECT_EQ(trained("abc", {.vocabulary_size = 1000, .added_tokens = {}})->vocabulary_size(), 256);
  EXPECT_EQ(trained("abc", {.vocabulary_size = 1000, .minimum_count = 1, .added_tokens = {}})->vocabulary_size(), 258);
  EXPECT_EQ(trained("ab ab", {.vocabulary_size = 1000, .added_tokens = {}})->vocabulary_size(), 257);
}

// Hours if a merge cost the words it is in.
TEST(BpeTrainer, OneLongWordIsLearnedAsFast) {
  std::string text = test::random_words(100000, "abcdefghij", 3);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  const auto tokenizer = trained(text, {.vocabulary_size = 4096, .added_tokens = {}});
  EXPECT_EQ(tokenizer->vocabulary_size(), 4096);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(BpeTrainer, BadArgumentsAreNamed) {
  EXPECT_EQ(error_of([] { trained("", {}); }), "[tokenizer] bpe: expected text to learn from, found none");
  EXPECT_EQ(error_of([] { trained("a", {.vocabulary_size = 256, .added_tokens = {"<s>"}}); }),
            "[tokenizer] bpe: expected a vocabulary of at least 257 (256 bytes, 1 added tokens), found 256");
  EXPECT_EQ(error_of([] { trained("a", {.vocabulary_size = 300, .added_tokens = {""}}); }),
            "[tokenizer] bpe: added token 256 is empty");
}

}  // namespace
}  // namespace quern::data
