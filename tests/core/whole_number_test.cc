#include "core/whole_number.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace quern {
namespace {

TEST(WholeNumber, DigitsUnderscoresAndExponentsAreExact) {
  const std::pair<const char*, uint64_t> cases[] = {{"0", 0},
                                                    {"007", 7},
                                                    {"10_000", 10'000},
                                                    {"1e3", 1000},
                                                    {"1E3", 1000},
                                                    {"1e+3", 1000},
                                                    {"2.5e3", 2500},
                                                    {"1_0.5e1", 105},
                                                    {"1.0", 1},
                                                    {"1.", 1},
                                                    {"1500e-2", 15},
                                                    {"0e99", 0},
                                                    {"0.000e0", 0},
                                                    {"9007199254740993", 9007199254740993},
                                                    {"9.007199254740993e15", 9007199254740993},
                                                    {"18446744073709551615", UINT64_MAX},
                                                    {"1844674407370955161.5e1", UINT64_MAX}};
  for (const auto& [text, value] : cases) EXPECT_EQ(parse_whole_number(text), value) << text;
}

TEST(WholeNumber, EverythingElseIsRefused) {
  for (const char* text : {"",      " 5",    "5 ",
                           "+5",    "-5",    "0x10",
                           "0b1",   "1.5",   "1.5e0",
                           "15e-1", "e3",    ".5e1",
                           "1e",    "1e3.0", "1e1000",
                           "_1",    "1_",    "1__0",
                           "1_e3",  "10k",   "many",
                           "nan",   "inf",   "18446744073709551616",
                           "1e20",  "1.2.3", "1e999999999999999999999",
                           "1,000"}) {
    EXPECT_EQ(parse_whole_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_whole_number(std::string(1000, '0')), std::nullopt);
}

TEST(WholeNumber, SuffixesGetAHint) {
  EXPECT_EQ(whole_number_hint("10k"), "; write 10e3");
  EXPECT_EQ(whole_number_hint("2.5M"), "; write 2.5e6");
  EXPECT_EQ(whole_number_hint("1B"), "; write 1e9");
  for (const char* text : {"", "k", "many", "1e3k", "0.0001k", "-1k"}) EXPECT_EQ(whole_number_hint(text), "") << text;
}

}  // namespace
}  // namespace quern
