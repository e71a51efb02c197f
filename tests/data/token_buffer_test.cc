#include "data/token_buffer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "data/files.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;
using Tokens = std::vector<int32_t>;

void encode_bytes(std::string_view text, Tokens& tokens) {
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

Tokens tokens_of(const TokenStream& stream, uint64_t position, size_t count) {
  Tokens tokens(count);
  stream.copy(position, count, tokens.data());
  return tokens;
}

TEST(TokenBuffer, ReturnsWhatWasAppended) {
  for (const uint32_t vocabulary : {65536u, 65537u, 1u << 31}) {
    TokenBuffer buffer(vocabulary);
    const auto last = static_cast<int32_t>(vocabulary - 1);
    buffer.append(Tokens{1, 2, last});
    buffer.append(Tokens{0, last});
    EXPECT_EQ(buffer.size(), 5u);
    EXPECT_EQ(tokens_of(buffer, 0, 5), (Tokens{1, 2, last, 0, last}));
    EXPECT_EQ(tokens_of(buffer, 2, 2), (Tokens{last, 0}));
    EXPECT_EQ(tokens_of(buffer, 5, 0), Tokens{});
  }
}

TEST(TokenBuffer, ReadsAcrossChunksAndUsesTwoBytesPerToken) {
  TokenBuffer buffer(65536);
  Tokens tokens(2 * TokenBuffer::kChunkTokens + 7);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 2654435761u >> 16 & 0xffff);
  buffer.append(tokens);
  EXPECT_EQ(tokens_of(buffer, 0, tokens.size()), tokens);
  const size_t from = TokenBuffer::kChunkTokens - 3;
  EXPECT_EQ(tokens_of(buffer, from, 6),
            Tokens(tokens.begin() + static_cast<ptrdiff_t>(from), tokens.begin() + static_cast<ptrdiff_t>(from) + 6));
  EXPECT_EQ(buffer.memory_bytes(), 3 * TokenBuffer::kChunkTokens * 2);
}

TEST(TokenBuffer, RejectsTokensOutsideTheVocabulary) {
  TokenBuffer buffer(10);
  EXPECT_EQ(error_of([&] { buffer.append(Tokens{3, 10}); }), "[data] token 1: expected an id from 0 to 9, found 10");
  EXPECT_TRUE(contains(error_of([&] { buffer.append(Tokens{-1}); }), "found -1"));
  EXPECT_TRUE(contains(error_of([] { TokenBuffer none(0); }), "vocabulary"));
  EXPECT_TRUE(contains(error_of([] { TokenBuffer large(0x80000001u); }), "vocabulary"));
}

TEST(TokenBuffer, PiecewiseTokenizationMatchesTheCompleteText) {
  std::string text;
  while (text.size() < 3 * TokenBuffer::kPieceBytes) text += "Once upon a time,\n\n  there was a mill. ";
  TokenBuffer buffer(256);
  size_t pieces = 0;
  buffer.append_text(text, [&pieces](std::string_view piece, Tokens& tokens) {
    ++pieces;
    EXPECT_LE(piece.size(), TokenBuffer::kPieceBytes + 100);
    encode_bytes(piece, tokens);
  });
  EXPECT_GE(pieces, 3u);
  EXPECT_LE(pieces, 4u);
  Tokens whole;
  encode_bytes(text, whole);
  EXPECT_EQ(tokens_of(buffer, 0, buffer.size()), whole);
}

TEST(PieceLength, SplitsBetweenAVisibleCharacterAndASpace) {
  EXPECT_EQ(piece_length("abc", 3), 3u);
  EXPECT_EQ(piece_length("abc def ghi", 2), 3u);
  EXPECT_EQ(piece_length("ab  c d", 3), 5u);                           // not inside the two spaces
  EXPECT_EQ(piece_length("\xC3\xA9t\xC3\xA9 la", 4), 5u);              // after a letter beyond ASCII
  EXPECT_EQ(piece_length("abcd\xC2\xA0 e f", 5), 8u);                  // not after a no-break space
  EXPECT_EQ(piece_length("\xE3\x80\x82 e f", 3), 3u);                  // after a full stop of Chinese
  EXPECT_EQ(piece_length("\xE3\x80\x80 e f", 3), 5u);                  // not after a space of Chinese
  EXPECT_EQ(piece_length("a\n\n\n\nb", 2), 2u);                        // no such place: before a line break
  EXPECT_EQ(piece_length("abc def", 5), 7u);                           // the end is such a place
  EXPECT_EQ(piece_length("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3), 4u);  // no space at all: not inside a character
}

// Text of any bytes is cut into pieces that are not empty and no longer than twice what was asked for.
TEST(PieceLength, IsBoundedForAnyBytes) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 60 + 1, ' ');
    const size_t kinds = 1 + random() % 4;
    for (char& c : text) c = "a \n\xC3\x80\xA0\xE2\x80"[random() % (2 * kinds)];
    const size_t wanted = 1 + random() % 16;
    const size_t length = piece_length(text, wanted);
    EXPECT_GE(length, 1u);
    EXPECT_LE(length, 2 * wanted);
    EXPECT_LE(length, text.size());
  }
}

}  // namespace
}  // namespace quern::data
