// Files that are damaged in thousands of ways: each is read as a tokenizer that works, or is an Error.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "data/byte_alphabet.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "tests/data/tokenizer_models.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

// Inputs on which parsers are most likely to fail.
constexpr std::array<std::string_view, 37> kPieces = {"null",      "true",        "false",
                                                      "0",         "-1",          "255",
                                                      "256",       "2147483648",  "18446744073709551616",
                                                      "1e999",     "0.5",         "\"\"",
                                                      "{}",        "[]",          "[[[[",
                                                      "{\"a\":",   "\\ud800",     "\\u0000",
                                                      "\xff",      "\"a b\"",     "\"Ġ\"",
                                                      "BPE",       ",",           "]",
                                                      "}",         " ",           "\"a\"",
                                                      "WordLevel", "Metaspace",   "\"first\"",
                                                      "NFC",       "\"▁\"",       "\"<0x0A>\"",
                                                      "Sequence",  "\"Prepend\"", "Digits",
                                                      "null,"};

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

// How many inputs there are for each of those in `make test`: QUERN_TOKENIZER_FUZZ, for longer campaigns.
size_t campaign() {
  const char* const text = std::getenv("QUERN_TOKENIZER_FUZZ");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// Whether decoding restores every text: damage to a file can make a tokenizer of a kind that does not.
bool restores_text(const Tokenizer& tokenizer) {
  const TokenizerParts parts = tokenizer.parts();
  std::set<std::string> bytes;  // rare ones may be missing
  for (const std::string& token : parts.tokens) {
    const auto text = from_alphabet(token);
    if (text && text->size() == 1) bytes.insert(*text);
  }
  return parts.pretokenizer == PretokenizerKind::kGpt2 && parts.normalizer == NormalizerKind::kNone &&
         (bytes.size() == 256 || tokenizer.name() != "bpe");
}

// A tokenizer that was read must keep every promise, however odd the file was.
void expect_works(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  std::vector<int32_t> document;
  tokenizer.encode_part_to(text, false, document);
  for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer.vocabulary_size());
  for (const int32_t id : document) ASSERT_TRUE(id >= 0 && id < tokenizer.vocabulary_size());
  const std::string decoded = tokenizer.decode(ids);
  if (restores_text(tokenizer)) {
    ASSERT_EQ(decoded, text);
  }
  const std::string json = tokenizer.to_json();
  ASSERT_EQ(Tokenizer::from_json(json, "again")->to_json(), json);
}

// How many of `inputs` mutations were read.
size_t fuzz(const std::string& json, size_t inputs, unsigned seed, const std::string& text) {
  Mutator mutator(seed);
  size_t read = 0;
  for (size_t i = 0; i < inputs * campaign(); ++i) {
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
  EXPECT_GT(read, 500u * campaign());
  EXPECT_LT(read, 12000u * campaign());
}

TEST(TokenizerFuzz, DamagedFilesOfPublishedModelsAreReadOrRejected) {
  const std::string text = "the ab. \xff\u4e2d\u00e9e\u0301 12</s><|endoftext|>\n";
  size_t read = 0;
  unsigned seed = 10;
  for (const PretokenizerKind kind :
       {PretokenizerKind::kDigitsGpt2, PretokenizerKind::kLlama3, PretokenizerKind::kQwen2}) {
    read += fuzz(make_tokenizer(test::byte_level_parts(kind), "fuzz")->to_json(), 1500, ++seed, text);
  }
  for (const SpacePrefix prefix : {SpacePrefix::kAlways, SpacePrefix::kMetaspaceFirst, SpacePrefix::kNever}) {
    read += fuzz(make_tokenizer(test::sentence_piece_parts(prefix), "fuzz")->to_json(), 1500, ++seed, text);
  }
  EXPECT_GT(read, 500u * campaign());
  EXPECT_LT(read, 8000u * campaign());
}

// As a damaged GGUF file would give them.
TEST(TokenizerFuzz, DamagedPartsAreUsedOrRejected) {
  std::mt19937 generator(20);
  const auto below = [&](size_t n) { return generator() % n; };
  std::vector<TokenizerParts> kinds = {test::sentence_piece_parts()};
  for (const PretokenizerKind kind : {PretokenizerKind::kGpt2, PretokenizerKind::kLlama3, PretokenizerKind::kQwen2}) {
    kinds.push_back(test::byte_level_parts(kind));
  }
  size_t used = 0;
  const size_t inputs = 4000 * campaign();
  for (size_t i = 0; i < inputs; ++i) {
    TokenizerParts parts = kinds[below(kinds.size())];
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      const size_t id = below(parts.tokens.size());
      const auto any_id = static_cast<int32_t>(below(2 * parts.tokens.size())) - 5;
      switch (below(9)) {
        case 0:
          parts.tokens[id] = parts.tokens[below(parts.tokens.size())].substr(0, below(5));
          break;
        case 1:
          parts.types[id % parts.types.size()] = static_cast<TokenType>(below(8));
          break;
        case 2:
          parts.eos = any_id;
          break;
        case 3:
          parts.unk = any_id;
          break;
        case 4:
          parts.bos = any_id;
          parts.add_bos = below(2) == 0;
          break;
        case 5:
          parts.types.resize(below(8) == 0 ? id : parts.types.size());
          break;
        case 6:
          parts.merges[below(parts.merges.size())].right = parts.tokens[id];
          break;
        case 7:
          parts.byte_fallback = below(2) == 0;
          break;
        default:
          parts.tokens[id] += static_cast<char>(static_cast<unsigned char>(below(256)));
      }
      if (parts.types.empty()) break;
    }
    try {
      const auto tokenizer = make_tokenizer(parts, "fuzz");
      expect_works(*tokenizer, "the ab. \xff\u4e2d 12");
      ++used;
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).substr(0, 17), "[tokenizer] fuzz:");
    }
  }
  EXPECT_GT(used, inputs / 10);
  EXPECT_LT(used, inputs);
}

TEST(TokenizerFuzz, DeepNestingIsAnError) {
  EXPECT_THROW(Tokenizer::from_json(std::string(1000000, '['), "deep"), Error);
  EXPECT_THROW(Tokenizer::from_json(std::string(1000000, '[') + std::string(1000000, ']'), "deep"), Error);
}

}  // namespace
}  // namespace quern::data
