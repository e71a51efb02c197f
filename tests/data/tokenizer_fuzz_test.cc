// Files that are damaged in thousands of ways: each is read as a tokenizer that works, or is an Error.
#include <gtest/gtest.h>

#include <array>

#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

// Inputs on which parsers are most likely to fail.
constexpr std::array<std::string_view, 28> kPieces = {
    "null",     "true",    "false", "0",   "-1", "255",  "256",     "2147483648", "18446744073709551616",
    "1e999",    "0.5",     "\"\"",  "{}",  "[]", "[[[[", "{\"a\":", "\\ud800",    "\\u0000",
    "\xff",     "\"a b\"", "\"Ġ\"", "BPE", ",",  "]",    "}",       " ",          "\"a\"",
    "WordLevel"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : generator_(seed) {}

  std::string mutate(std::string text) {
    const size_t changes = 1 + below(3);
    for (size_t i = 0; i < changes && !text.empty(); ++i) change(text);
    return text;
  }

 private:
  size_t below(size_t n) { return generator_() % n; }

  void change(std::string& text) {
    const size_t at = below(text.size());
    const size_t length = std::min(text.size() - at, 1 + below(below(4) == 0 ? 200 : 8));
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ 1 << below(8));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), length));
        break;
      case 3:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 4:
        replace_value(text, at);
        break;
      case 5:
        text.resize(below(10) == 0 ? at : text.size());
        break;
      default:
        swap_digits(text, at);
        break;
    }
  }

  // From the next colon to the end of the line: most of these are still JSON.
  void replace_value(std::string& text, size_t at) {
    const size_t colon = text.find(':', at);
    const size_t end = text.find_first_of(",\n", colon == std::string::npos ? at : colon);
    if (colon == std::string::npos || end == std::string::npos) return;
    text.replace(colon + 1, end - colon - 1, kPieces[below(kPieces.size())]);
  }

  void swap_digits(std::string& text, size_t at) {
    const size_t digit = text.find_first_of("0123456789", at);
    if (digit != std::string::npos) text[digit] = static_cast<char>('0' + below(10));
  }

  std::mt19937 generator_;
};

// A tokenizer that was read must keep every promise, however odd the file was.
void expect_works(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer.vocabulary_size());
  ASSERT_EQ(tokenizer.decode(ids), text);
  const std::string json = tokenizer.to_json();
  ASSERT_EQ(Tokenizer::from_json(json, "again")->to_json(), json);
}

// How many of `inputs` mutations were read.
size_t fuzz(const std::string& json, size_t inputs, unsigned seed, const std::string& text) {
  Mutator mutator(seed);
  size_t read = 0;
  for (size_t i = 0; i < inputs; ++i) {
    const std::string damaged = mutator.mutate(json);
    std::unique_ptr<Tokenizer> tokenizer;
    try {
      tokenizer = Tokenizer::from_json(damaged, "fuzz");
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).substr(0, 12), "[tokenizer] ");
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
      continue;
    }
    ++read;
    try {
      expect_works(*tokenizer, text);
    } catch (const Error& error) {
      // A character model may have lost a character.
      EXPECT_EQ(tokenizer->name(), "char") << error.what();
    }
  }
  return read;
}

TEST(TokenizerFuzz, DamagedFilesAreReadOrRejected) {
  const auto bpe = test::trained(test::random_words(400, "abcdefgh\"\\", 1) + "\u00e9\u00e9\u4e2d\u4e2d",
                                 {.vocabulary_size = 330, .added_tokens = {"<|endoftext|>", "<s>"}});
  const std::string text = "abc \xff d\"<|endoftext|>\u4e2d<s> ";
  size_t read = 0;
  read += fuzz(bpe->to_json(), 6000, 1, text);
  read += fuzz(ByteTokenizer().to_json(), 3000, 2, text);
  read += fuzz(CharTokenizer::from_text("abc \n\"\\\u00e9\U0001f600", "text")->to_json(), 4000, 3, "abc \u00e9");
  // Some must survive, or the mutations are too wild to test more than the JSON parser.
  EXPECT_GT(read, 500u);
  EXPECT_LT(read, 12000u);
}

TEST(TokenizerFuzz, DeepNestingIsAnError) {
  EXPECT_THROW(Tokenizer::from_json(std::string(1000000, '['), "deep"), Error);
  EXPECT_THROW(Tokenizer::from_json(std::string(1000000, '[') + std::string(1000000, ']'), "deep"), Error);
}

}  // namespace
}  // namespace quern::data
