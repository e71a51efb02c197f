#include "data/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "data/byte_alphabet.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using test::error_of;
using Ids = std::vector<int32_t>;

std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  for (const uint8_t byte : bytes_in_alphabet_order()) tokens.emplace_back(1, static_cast<char>(byte));
  return tokens;
}

int32_t id_of(const BpeModel& model, std::string_view bytes) {
  return static_cast<int32_t>(std::ranges::find(model.tokens, bytes) - model.tokens.begin());
}

// The bytes and the tokens of these merges.
BpeModel model_of(const std::vector<std::pair<std::string, std::string>>& merges) {
  BpeModel model{.tokens = byte_tokens(), .merges = {}, .added = {}};
  for (const auto& [left, right] : merges) {
    model.tokens.push_back(left + right);
    model.merges.push_back({id_of(model, left), id_of(model, right), static_cast<int32_t>(model.tokens.size()) - 1});
  }
  return model;
}

void add_token(BpeModel& model, const std::string& content) {
  model.added.push_back({.content = content, .id = static_cast<int32_t>(model.tokens.size())});
  model.tokens.push_back(content);
}

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const int32_t id : tokenizer.encode(text)) tokens.emplace_back(tokenizer.bytes_of(id));
  return tokens;
}

using Tokens = std::vector<std::string>;

TEST(BpeTokenizer, MergesByRankThenFromTheLeft) {
  const BpeTokenizer tokenizer(model_of({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"bc", "d"}, {"aa", "aa"}}), "test");
  EXPECT_EQ(tokens_of(tokenizer, "abcd"), (Tokens{"a", "bcd"}));
  EXPECT_EQ(tokens_of(tokenizer, "abab"), (Tokens{"ab", "ab"}));
  EXPECT_EQ(tokens_of(tokenizer, "aaa"), (Tokens{"aa", "a"}));
  EXPECT_EQ(tokens_of(tokenizer, "aaaaaaa"), (Tokens{"aaaa", "aa", "a"}));
  EXPECT_EQ(tokens_of(tokenizer, "ab c"), (Tokens{"ab", " ", "c"}));
  EXPECT_EQ(tokens_of(tokenizer, "b  c"), (Tokens{"b", " ", " ", "c"}));
}

TEST(BpeTokenizer, FindsAddedTokensFirstAndTheLongest) {
  BpeModel model = model_of({{"a", "b"}});
  add_token(model, "<|endoftext|>");
  add_token(model, "<|");
  add_token(model, "\u4e2d");
  const BpeTokenizer tokenizer(model, "test");
  EXPECT_EQ(tokenizer.end_of_text(), 257);
  EXPECT_EQ(tokens_of(tokenizer, "ab<|endoftext|>ab<|ab"), (Tokens{"ab", "<|endoftext|>", "ab", "<|", "ab"}));
  EXPECT_EQ(tokens_of(tokenizer, "<|endoftext|><|endoftext|"),
            (Tokens{"<|endoftext|>", "<|", "e", "n", "d", "o", "f", "t", "e", "x", "t", "|"}));
  EXPECT_EQ(tokenizer.encode("a\u4e2d"), (Ids{id_of(model, "a"), 259}));
  EXPECT_EQ(BpeTokenizer(model_of({}), "test").end_of_text(), std::nullopt);
}

// A document that mentions a special token must not be cut in two by it.
TEST(BpeTokenizer, SpecialTokensInDocumentsAreText) {
  BpeModel model = model_of({{"a", "b"}});
  add_token(model, "<|endoftext|>");
  add_token(model, "abba");
  model.added.back().special = false;
  const BpeTokenizer tokenizer(model, "test");
  Ids ids = {1};
  tokenizer.encode_document_to("ab<|endoftext|>abba", ids);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids[1], id_of(model, "ab"));
  EXPECT_EQ(ids.back(), id_of(model, "abba"));
  EXPECT_EQ(std::ranges::count(ids, tokenizer.end_of_text().value()), 0);
  EXPECT_EQ(tokenizer.decode(std::span(ids).subspan(1)), "ab<|endoftext|>abba");

  model.added.front().special = false;  // as some files have it
  ids.clear();
  const BpeTokenizer unmarked(model, "test");
  unmarked.encode_document_to("<|endoftext|>", ids);
  EXPECT_EQ(std::ranges::count(ids, unmarked.end_of_text().value()), 0);
}

TEST(BpeTokenizer, RoundTripsAnyBytes) {
  const auto tokenizer =
      test::trained(test::random_words(3000, "etaoin", 1) + test::random_bytes(20000, 3),
                    {.vocabulary_size = 1000, .minimum_count = 2, .added_tokens = {"<|endoftext|>"}});
  std::vector<std::string> texts = test::hard_texts();
  for (unsigned seed = 0; seed < 300; ++seed) texts.push_back(test::random_bytes(size_t{7} * seed, seed));
  texts.push_back(test::random_words(2000, "etaoin shrdlu<|endoftext|>", 4));
  for (const std::string& text : texts) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

// Always the possible merge of lowest rank, leftmost; found by looking at all.
Ids merged_naively(const BpeMerges& merges, Ids word) {
  while (true) {
    uint32_t best = BpeMerges::kNone;
    size_t at = 0;
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const uint32_t rank = merges.rank(word[i], word[i + 1]);
      if (rank < best) best = rank, at = i;
    }
    if (best == BpeMerges::kNone) return word;
    word[at] = merges.list()[best].result;
    word.erase(word.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(BpeMerges, MatchTheNaiveTwin) {
  std::mt19937 generator(5);
  for (int round = 0; round < 300; ++round) {
    // Any two tokens make any other here, which no training would: ranks rise and fall along a merge.
    std::vector<Merge> list;
    std::vector<bool> seen(64);
    for (int i = 0; i < 40; ++i) {
      const auto left = static_cast<int32_t>(generator() % 8), right = static_cast<int32_t>(generator() % 8);
      const auto pair = static_cast<size_t>(left) * 8 + static_cast<size_t>(right);
      if (seen[pair]) continue;
      seen[pair] = true;
      list.push_back({left, right, static_cast<int32_t>(generator() % 8)});
    }
    const BpeMerges merges(list);
    Ids word(generator() % 60);
    for (int32_t& id : word) id = static_cast<int32_t>(generator() % 8);
    MergeScratch scratch;
    Ids found;
    merges.apply(word, scratch, found);
    ASSERT_EQ(found, merged_naively(merges, word)) << "round " << round;
  }
}

// Hours if a merge cost the length of the word.
TEST(BpeTokenizer, AMegabyteWithoutSpacesTakesAboutASecond) {
  const auto tokenizer =
      test::trained(test::random_words(5000, "abcdefgh", 6), {.vocabulary_size = 600, .added_tokens = {}});
  std::string word = test::random_words(220000, "abcdefgh", 7);
  std::erase_if(word, [](char c) { return c == ' ' || c == '\n'; });
  ASSERT_GT(word.size(), size_t{1} << 20);
  const Ids ids = tokenizer->encode(word);
  EXPECT_LT(ids.size(), word.size() / 2);
  EXPECT_EQ(tokenizer->decode(ids), word);
}

TEST(BpeTokenizer, ThreadsGetTheSameIds) {
  const std::string text = test::random_words(20000, "etaoin", 8);
  const auto tokenizer = test::trained(text, {.vocabulary_size = 700, .added_tokens = {}});
  const Ids expected = tokenizer->encode(text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (Ids& ids : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) ids = tokenizer->encode(text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

TEST(BpeTokenizer, CachedWordsGetTheSameIds) {
  const std::string text =
      test::random_words(50000, "abcdefghijklmnopqrstuvwxyz", 9);  // more words than are remembered
  const auto tokenizer = test::trained(text, {.vocabulary_size = 600, .added_tokens = {}});
  const Ids first = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->encode(text), first);
  EXPECT_EQ(tokenizer->decode(first), text);
}

TEST(BpeTokenizer, RejectsInconsistentParts) {
  const auto message = [](const BpeModel& model) { return error_of([&] { BpeTokenizer(model, "m"); }); };
  const BpeModel good = model_of({{"a", "b"}});
  EXPECT_EQ(message(good), "no error");
  BpeModel bad = good;
  bad.tokens[5] = "zz";
  EXPECT_EQ(message(bad), "[tokenizer] m: expected a token for each byte of ordinary text, found none for 0x26");
  bad = good, bad.tokens.emplace_back("ab");
  EXPECT_EQ(message(bad), "[tokenizer] m: tokens 256 and 257 are both \"ab\"");
  bad = good, bad.tokens.emplace_back();
  EXPECT_EQ(message(bad), "[tokenizer] m: token 257 is empty");
  bad = good, bad.merges.push_back({0, 257, 1});
  EXPECT_EQ(message(bad), "[tokenizer] m: merge 1: expected ids below 257, found 257");
  bad = good, bad.merges[0].result = 0;
  EXPECT_EQ(message(bad), "[tokenizer] m: merge 0: expected token 0 to be \"ab\", found \"!\"");
  bad = good, bad.merges.push_back(bad.merges[0]);
  EXPECT_EQ(message(bad), "[tokenizer] m: merge 1 repeats merge 0");
  bad = good, add_token(bad, "<s>"), add_token(bad, "<s>");
  EXPECT_EQ(message(bad), "[tokenizer] m: added token \"<s>\" appears twice");
  bad = good, add_token(bad, "\xff");
  EXPECT_EQ(message(bad), "[tokenizer] m: added token 257: expected UTF-8, found \"\\xff\"");
  bad = good, add_token(bad, "\u00e9");  // how GPT-2's alphabet writes the byte 0xe9
  EXPECT_EQ(message(bad), "[tokenizer] m: added token \"\u00e9\": expected a text that differs from token 165");
  bad = good, add_token(bad, "ab");
  EXPECT_EQ(message(bad), "[tokenizer] m: added token \"ab\": expected a text that differs from token 256");
}

}  // namespace
}  // namespace quern::data
