#include "data/pretokenizer.h"

#include <gtest/gtest.h>

#include "tests/data/pretokenizer_reference.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using Pieces = std::vector<std::string>;

constexpr PretokenizerKind kKinds[] = {PretokenizerKind::kGpt2, PretokenizerKind::kDigitsGpt2,
                                       PretokenizerKind::kLlama3, PretokenizerKind::kQwen2};

Pieces pieces_of(std::string_view text, PretokenizerKind kind = PretokenizerKind::kGpt2) {
  Pretokenizer pretokenizer(kind);
  pretokenizer.start(text);
  Pieces pieces;
  for (std::string_view piece; pretokenizer.next(piece);) pieces.emplace_back(piece);
  return pieces;
}

TEST(Pretokenizer, SplitsLikeGpt2) {
  EXPECT_EQ(pieces_of("Hello, world!"), (Pieces{"Hello", ",", " world", "!"}));
  EXPECT_EQ(pieces_of("I'll don't you're 's"), (Pieces{"I", "'ll", " don", "'t", " you", "'re", " '", "s"}));
  EXPECT_EQ(pieces_of("IT'S"), (Pieces{"IT", "'", "S"}));
  EXPECT_EQ(pieces_of("x86 in 2024"), (Pieces{"x", "86", " in", " 2024"}));
  EXPECT_EQ(pieces_of("  two   spaces "), (Pieces{" ", " two", "  ", " spaces", " "}));
  EXPECT_EQ(pieces_of("line\n\nnext\t\tx"), (Pieces{"line", "\n", "\n", "next", "\t", "\t", "x"}));
  EXPECT_EQ(pieces_of("\u4e2d\u6587 \u00e9t\u00e9\u00bd"), (Pieces{"\u4e2d\u6587", " \u00e9t\u00e9", "\u00bd"}));
  EXPECT_EQ(pieces_of("\U0001f600\u200d\u2764 ok"), (Pieces{"\U0001f600\u200d\u2764", " ok"}));
}

TEST(Pretokenizer, DigitsAreAloneAndEndTheTextBesideThem) {
  const auto pieces = [](std::string_view text) { return pieces_of(text, PretokenizerKind::kDigitsGpt2); };
  EXPECT_EQ(pieces(" 12"), (Pieces{" ", "1", "2"}));
  EXPECT_EQ(pieces("a  1 b"), (Pieces{"a", "  ", "1", " b"}));  // GPT-2 would keep the second space for the number
  EXPECT_EQ(pieces("x86 in 2024"), (Pieces{"x", "8", "6", " in", " ", "2", "0", "2", "4"}));
  EXPECT_EQ(pieces("\u00bd\u0664$5"), (Pieces{"\u00bd", "\u0664", "$", "5"}));
  EXPECT_EQ(pieces("'s1's"), (Pieces{"'s", "1", "'s"}));
}

TEST(Pretokenizer, SplitsLikeLlama3) {
  const auto pieces = [](std::string_view text) { return pieces_of(text, PretokenizerKind::kLlama3); };
  EXPECT_EQ(pieces("I'LL don't 'Tis O'\u017f"), (Pieces{"I", "'LL", " don", "'t", " '", "Tis", " O", "'\u017f"}));
  EXPECT_EQ(pieces("(hello) \tworld"), (Pieces{"(hello", ")", " ", "\tworld"}));
  EXPECT_EQ(pieces("12345 1"), (Pieces{"123", "45", " ", "1"}));
  EXPECT_EQ(pieces("end.\n\nNext !\r\n x"), (Pieces{"end", ".\n\n", "Next", " !\r\n", " x"}));
  EXPECT_EQ(pieces("a  \n  \n  b"), (Pieces{"a", "  \n  \n", " ", " b"}));
  EXPECT_EQ(pieces("a   b  "), (Pieces{"a", "  ", " b", "  "}));
  EXPECT_EQ(pieces("\nabc\u0301d"), (Pieces{"\n", "abc", "\u0301d"}));
  EXPECT_EQ(pieces("\u00a0\u4e2d\u6587\u3002"), (Pieces{"\u00a0\u4e2d\u6587", "\u3002"}));
}

TEST(Pretokenizer, QwenSplitsDigits) {
  EXPECT_EQ(pieces_of("a 123!", PretokenizerKind::kQwen2), (Pieces{"a", " ", "1", "2", "3", "!"}));
}

// PCRE2 of Debian 12 has Unicode 14, so the texts have only characters that are older.
TEST(Pretokenizer, EveryKindMatchesItsRegularExpression) {
  const std::vector<std::string> parts = {
      "a",       "B",  "\u00e9", "\u4e2d", "\u0939", "1",      "\u00bd", "\u0664", " ",          "  ",    "\n",
      "\r",      "\t", "\u00a0", "\u3000", "\u0085", "\u2028", "\u180e", "'",      "'s",         "'LL",   "'Re",
      "'\u017f", "'v", "!",      "\u3002", "\u0301", "\u200b", "<",      "_",      "\U0001f600", "\ufffd"};
  std::mt19937 generator(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = generator() % 14; n > 0; --n) text += parts[generator() % parts.size()];
    for (const PretokenizerKind kind : kKinds) {
      ASSERT_EQ(pieces_of(text, kind), test::reference_pieces(kind, text)) << text << " " << static_cast<int>(kind);
    }
  }
}

TEST(Pretokenizer, WhiteSpaceFollowsUnicode) {
  for (const char* space : {"\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028",
                            "\u2029", "\u202f", "\u205f", "\u3000"}) {
    EXPECT_EQ(pieces_of(std::string("a") + space + "!"), (Pieces{"a", space, "!"}));
  }
  // Not white space: the Mongolian vowel separator, which PCRE2 has in \s, and the zero-width space.
  for (const char* other : {"\u180e", "\u200b"}) {
    EXPECT_EQ(pieces_of(std::string("a") + other + "!"), (Pieces{"a", std::string(other) + "!"}));
  }
}

TEST(Pretokenizer, InvalidUtf8FormsSeparatePieces) {
  EXPECT_EQ(pieces_of("\xff"), (Pieces{"\xff"}));
  EXPECT_EQ(pieces_of("ab\xff\xfe cd"), (Pieces{"ab", "\xff\xfe", " cd"}));
  EXPECT_EQ(pieces_of("caf\xc3"), (Pieces{"caf", "\xc3"}));
  EXPECT_EQ(pieces_of("a  \xff  b"), (Pieces{"a", "  ", "\xff", " ", " b"}));
}

TEST(Pretokenizer, PiecesConcatenateToTheText) {
  std::vector<std::string> texts = test::hard_texts();
  for (unsigned seed = 0; seed < 200; ++seed) texts.push_back(test::random_bytes(size_t{3} * seed, seed));
  for (const PretokenizerKind kind : kKinds) {
    for (const std::string& text : texts) {
      std::string joined;
      for (const std::string& piece : pieces_of(text, kind)) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      EXPECT_EQ(joined, text);
    }
  }
}

// Minutes if a piece cost the rest of the text, or white space were tried again from each of its positions.
TEST(Pretokenizer, TimeIsLinear) {
  constexpr size_t kLong = size_t{1} << 20;
  EXPECT_EQ(pieces_of(std::string(kLong, 'a')).size(), 1u);
  EXPECT_EQ(pieces_of(std::string(kLong, ' ') + "a").size(), 2u);
  EXPECT_EQ(pieces_of(std::string(kLong, '\xff')).size(), 1u);
  std::string alternating;
  for (size_t i = 0; i < kLong / 8; ++i) alternating += "a\xff";
  EXPECT_EQ(pieces_of(alternating).size(), kLong / 4);
  EXPECT_EQ(pieces_of(std::string(kLong, '\n') + "a", PretokenizerKind::kLlama3).size(), 2u);
  EXPECT_EQ(pieces_of(std::string(kLong, '\t') + "!", PretokenizerKind::kQwen2).size(), 3u);
}

}  // namespace
}  // namespace quern::data
