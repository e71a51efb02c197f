#include "data/utf8.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace quern::data {
namespace {

TEST(Utf8, EveryCodePointRoundTrips) {
  for (uint32_t value = 0; value <= kMaxCodePoint; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    append_utf8(value, text);
    const CodePoint found = read_code_point(text, 0);
    ASSERT_EQ(found.value, value);
    ASSERT_EQ(found.length, text.size());
  }
}

TEST(Utf8, RejectsInvalidSequencesOfRfc3629) {
  for (const std::string_view bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98", "\xff"}) {
    EXPECT_EQ(read_code_point(bad, 0).length, 0u) << in_quotes(bad);
  }
}

TEST(Utf8, ValidLengthStopsAtTheFirstBadByte) {
  for (size_t before = 0; before < 40; ++before) {
    std::string text(before, 'x');
    text += "\u00e9\U0001f600";
    EXPECT_EQ(valid_utf8_length(text), text.size());
    EXPECT_EQ(valid_utf8_length(fmt::format("{}\xff{}", text, text)), text.size());
    EXPECT_EQ(valid_utf8_length(text.substr(0, text.size() - 1)), text.size() - 4);
  }
}

TEST(Utf8, QuotesStayOnOneShortLine) {
  EXPECT_EQ(in_quotes("caf\u00e9"), "\"caf\u00e9\"");
  EXPECT_EQ(in_quotes("a\n\x7f\xff"), "\"a\\x0a\\x7f\\xff\"");
  EXPECT_EQ(in_quotes(std::string(100, 'a')), "\"" + std::string(40, 'a') + "\"...");
}

}  // namespace
}  // namespace quern::data
