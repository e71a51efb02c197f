#include "data/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

#include "data/utf8.h"

namespace quern::data {
namespace {

std::string nfc(std::string_view text) {
  std::string scratch;
  return std::string(to_nfc(text, scratch));
}

// The whole text at once, by the library. Only for valid UTF-8.
std::string reference(const std::string& text) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string result(reinterpret_cast<const char*>(out), static_cast<size_t>(length));
  std::free(out);  // NOLINT: the library allocates with malloc
  return result;
}

TEST(Nfc, ComposesAndOrders) {
  EXPECT_EQ(nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(nfc("x e\u0301 y"), "x \u00e9 y");
  EXPECT_EQ(nfc("\u212b"), "\u00c5");                // the sign for angstrom is a letter
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");    // Hangul
  EXPECT_EQ(nfc("\uac00\u11a8"), "\uac01");          // a syllable and a final consonant
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");  // marks in canonical order
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");          // excluded from composition
  EXPECT_EQ(nfc("\u0915\u093c"), "\u0915\u093c");    // so is this pair
  EXPECT_EQ(nfc("a\u0328\u0301\u0301b"), "\u0105\u0301\u0301b");
}

TEST(Nfc, NormalizedTextIsNotCopied) {
  std::string scratch = "unused";
  for (const std::string_view text :
       {std::string_view("plain ASCII text that is longer than eight bytes"),
        std::string_view("caf\u00e9 \u4e2d\u6587 \uac01 \U0001f600"), std::string_view()}) {
    EXPECT_EQ(to_nfc(text, scratch).data(), text.data());
  }
  EXPECT_EQ(scratch, "unused");
}

TEST(Nfc, InvalidBytesAreKeptAndSeparateText) {
  EXPECT_EQ(nfc("e\xff\u0301"), "e\xff\u0301");
  EXPECT_EQ(nfc("\xcc"), "\xcc");
  EXPECT_EQ(nfc("e\u0301\xcc"), "\u00e9\xcc");
  EXPECT_EQ(nfc("\x80\u0301"), "\x80\u0301");
  EXPECT_EQ(nfc("\xe1\x84\u0301"), "\xe1\x84\u0301");
}

TEST(Nfc, SegmentsGiveWhatTheWholeTextGives) {
  const std::vector<std::pair<uint32_t, uint32_t>> ranges = {
      {0x20, 0x7e},     {0xc0, 0x17f},    {0x300, 0x345},   {0x320, 0x330},   {0x915, 0x93c},   {0x1100, 0x1112},
      {0x1161, 0x1175}, {0x11a8, 0x11c2}, {0xac00, 0xac20}, {0x1e00, 0x1eff}, {0xf900, 0xf910}, {0x1d15e, 0x1d164}};
  std::mt19937 generator(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = generator() % 12; n > 0; --n) {
      const auto [low, high] = ranges[generator() % ranges.size()];
      append_utf8(low + static_cast<uint32_t>(generator() % (high - low + 1)), text);
    }
    ASSERT_EQ(nfc(text), reference(text)) << in_quotes(text);
  }
}

// Minutes if marks were exchanged one by one.
TEST(Nfc, ManyMarksTakeNoLonger) {
  std::string text = "a";
  for (int i = 0; i < 300000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  EXPECT_EQ(nfc(text).size(), text.size());  // the letter and one mark became one character of three bytes
}

}  // namespace
}  // namespace quern::data
