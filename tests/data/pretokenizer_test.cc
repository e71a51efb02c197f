#include "data/pretokenizer.h"

#include <gtest/gtest.h>

#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(std::string_view text) {
  Pretokenizer pretokenizer;
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
  for (const std::string& text : texts) {
    std::string joined;
    for (const std::string& piece : pieces_of(text)) {
      ASSERT_FALSE(piece.empty());
      joined += piece;
    }
    EXPECT_EQ(joined, text);
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
}

}  // namespace
}  // namespace quern::data
