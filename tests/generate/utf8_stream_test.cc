#include "generate/utf8_stream.h"

#include <gtest/gtest.h>

#include <random>

namespace quern {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

std::string in_pieces(const std::string& bytes, size_t piece) {
  Utf8Stream stream;
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += piece) text += stream.feed(std::string_view(bytes).substr(i, piece));
  return text + stream.finish();
}

TEST(Utf8Stream, GivesACharacterWithItsLastByte) {
  Utf8Stream stream;
  EXPECT_EQ(stream.feed("a\xC3"), "a");
  EXPECT_EQ(stream.feed("\xA9"), "\xC3\xA9");
  EXPECT_EQ(stream.feed("\xF0\x9F"), "");
  EXPECT_EQ(stream.feed("\x98"), "");
  EXPECT_EQ(stream.feed("\x80z"), "\xF0\x9F\x98\x80z");
  EXPECT_EQ(stream.feed(""), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ValidTextPassesHoweverItIsCut) {
  const std::string text =
      "plain, \xC2\x80\xDF\xBF \xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF \xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  for (size_t piece = 1; piece <= text.size(); ++piece) EXPECT_EQ(in_pieces(text, piece), text);
  const std::string zero("a\0b", 3);
  EXPECT_EQ(in_pieces(zero, 1), zero);
}

// The examples of the Unicode standard, tables 3-8 to 3-11.
TEST(Utf8Stream, WhatIsNoCharacterIsReplacedAsUnicodeRecommends) {
  const auto expect = [](const std::string& bytes, const std::string& text) {
    for (size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(in_pieces(bytes, piece), text) << piece;
  };
  const auto bad = [](int n) {
    std::string text;
    while (n-- > 0) text += kBad;
    return text;
  };
  expect("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", bad(8) + "A");
  expect("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", bad(8) + "A");
  expect("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", bad(5) + "A" + bad(2) + "B");
  expect("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", bad(4) + "A");
  expect("a\xF1\x80\x80", "a" + kBad);
}

// Valid and independent of the cut, for any bytes: a valid text passes unchanged.
TEST(Utf8Stream, AnyBytesGiveValidTextHoweverCut) {
  std::mt19937 random(1);
  const unsigned char kinds[] = {0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2,
                                 0xE0, 0xE1, 0xED, 0xF0, 0xF1, 0xF4, 0xFF};
  for (int round = 0; round < 10000; ++round) {
    std::string bytes(random() % 12, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random() % 8 == 0 ? random() : kinds[random() % sizeof(kinds)]);
    const std::string text = in_pieces(bytes, 100);
    ASSERT_EQ(in_pieces(text, 1), text);
    for (const size_t piece : {1u, 2u, 3u, 5u}) ASSERT_EQ(in_pieces(bytes, piece), text);
  }
}

}  // namespace
}  // namespace quern
