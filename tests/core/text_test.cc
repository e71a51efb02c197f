#include "core/text.h"

#include <gtest/gtest.h>

#include <array>

namespace quern {
namespace {

TEST(Text, InQuotesIsOnePrintableLine) {
  EXPECT_EQ(in_quotes("wte.weight"), "'wte.weight'");
  EXPECT_EQ(in_quotes(std::string_view("a\nb\0\x1b[31m\xff", 10)), "'a\\x0ab\\x00\\x1b[31m\\xff'");
  EXPECT_EQ(in_quotes(std::string(100, 'x'), 5), "'xxxxx...'");
}

TEST(Text, PrintableLeavesOrdinaryTextUnchanged) {
  for (const std::string_view text :
       {"", "wte.weight", "caf\u00E9 \u20AC 10", "\u65E5\u672C\u8A9E \U0001F600", "a\\b 'c'"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable(text, Lines::kStay), text);
  }
}

// A file of others must not move the cursor, set the title or the colours, or make a name look like another.
TEST(Text, PrintableEscapesControlSequences) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\x7f"), "a\\x1b[31mb\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\u009B31m \u0085"), "\\xc2\\x9b31m \\xc2\\x85");  // C1: an escape code in one character
  EXPECT_EQ(printable("\u202Etxt.exe\u2066\u200F\u061C"),
            "\\xe2\\x80\\xaetxt.exe\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c");
  EXPECT_EQ(printable("\u2028"), "\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("\x9b"
                      "31m \xff \xc3"),
            "\\x9b31m \\xff \\xc3");  // C1 in one byte, and what is not UTF-8
  EXPECT_EQ(printable("a\tb\nc\rd"), "a b c d");
  EXPECT_EQ(printable("a\tb\nc\rd\x1b", Lines::kStay), "a\tb\nc d\\x1b");
}

TEST(Text, NearestFindsTypos) {
  constexpr std::array<std::string_view, 4> kNames = {"train.steps", "train.seed", "model.width", "optimizer.rate"};
  EXPECT_EQ(nearest("train.stpes", kNames), "train.steps");
  EXPECT_EQ(nearest("model.widht", kNames), "model.width");
  EXPECT_EQ(nearest("optimiser.rate", kNames), "optimizer.rate");
  EXPECT_EQ(nearest("zzzzzzzzzzz", kNames), "");
  constexpr std::string_view kShort[] = {"fp32", "bf16"};
  EXPECT_EQ(nearest("fp23", kShort), "fp32") << "a swap is one edit";
  EXPECT_EQ(nearest(std::string(1'000'000, 'a'), kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
}

TEST(Text, Utf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"));
  for (const std::string_view wrong : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                       "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xe2\x28\xa1", "a\xff"}) {
    EXPECT_FALSE(is_utf8(wrong)) << in_quotes(wrong);
  }
}

}  // namespace
}  // namespace quern
