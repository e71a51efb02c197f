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

TEST(Text, NearestFindsTypingErrors) {
  constexpr std::array<std::string_view, 4> kNames = {"train.steps", "train.seed", "model.width", "optimizer.rate"};
  EXPECT_EQ(nearest("train.stpes", kNames), "train.steps");
  EXPECT_EQ(nearest("model.widht", kNames), "model.width");
  EXPECT_EQ(nearest("optimiser.rate", kNames), "optimizer.rate");
  EXPECT_EQ(nearest("zzzzzzzzzzz", kNames), "");
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
