#include "generate/stop_filter.h"

#include <gtest/gtest.h>

#include <random>

#include "support/message.h"

namespace quern {
namespace {

using Strings = std::vector<std::string>;

struct Result {
  std::string text;
  bool stopped;
  bool operator==(const Result&) const = default;
};

Result in_pieces(const Strings& stop, const std::string& text, size_t piece) {
  StopFilter filter(stop);
  std::string shown;
  for (size_t i = 0; i < text.size(); i += piece) shown += filter.feed(std::string_view(text).substr(i, piece));
  return {shown + filter.finish(), filter.stopped()};
}

// The first position at which a stop string ends, and the longest that ends there.
Result by_search(const Strings& stop, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& string : stop) {
      if (std::string_view(text).substr(0, end).ends_with(string)) longest = std::max(longest, string.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopFilter, RetainsWhatMayBecomeAStopString) {
  StopFilter filter(Strings{"stop"});
  EXPECT_EQ(filter.feed("do not s"), "do not ");
  EXPECT_EQ(filter.feed("to"), "");
  EXPECT_EQ(filter.feed("ck"), "stock");
  EXPECT_EQ(filter.feed("sts"), "st");
  EXPECT_EQ(filter.feed("top and more"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.feed("more"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, WhatWasRetainedAppearsAtTheEnd) {
  StopFilter filter(Strings{"<|end|>"});
  EXPECT_EQ(filter.feed("a <|en"), "a ");
  EXPECT_EQ(filter.finish(), "<|en");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, TheFirstToBeCompleteWinsAndThenTheLongest) {
  EXPECT_EQ(in_pieces({"abcd", "c"}, "xabcd", 100), (Result{"xab", true}));
  EXPECT_EQ(in_pieces({"c", "bc"}, "xabcd", 100), (Result{"xa", true}));
  EXPECT_EQ(in_pieces({}, "xabcd", 2), (Result{"xabcd", false}));
  EXPECT_EQ(in_pieces({"x"}, "xabcd", 2), (Result{"", true}));
}

TEST(StopFilter, CharactersStayComplete) {
  StopFilter filter(Strings{"\u00e9t\u00e9"});
  EXPECT_EQ(filter.feed("\u00e8"), "\u00e8");
  EXPECT_EQ(filter.feed("a\u00e9"), "a");
  EXPECT_EQ(filter.feed("\u00e9"), "\u00e9");
  EXPECT_EQ(filter.feed("t\u00e9"), "");
  EXPECT_TRUE(filter.stopped());
}

// Two letters, so that stop strings overlap with themselves and with each other. Nothing that is shown is taken back.
TEST(StopFilter, AgreesWithASearchHoweverTheTextIsCut) {
  std::mt19937 random(1);
  const auto word = [&](size_t least, size_t most) {
    std::string text(least + random() % (most - least + 1), 'a');
    for (char& letter : text) letter = random() % 3 == 0 ? 'b' : 'a';
    return text;
  };
  size_t stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    Strings stop;
    for (size_t i = random() % 4; i > 0; --i) stop.push_back(word(1, 7));
    const std::string text = word(0, 40);
    const Result expected = by_search(stop, text);
    for (const size_t piece : {1u, 2u, 5u, 100u}) ASSERT_EQ(in_pieces(stop, text, piece), expected) << text;
    stopped += expected.stopped;
  }
  EXPECT_GT(stopped, 500u);
  EXPECT_LT(stopped, 2500u);
}

TEST(StopFilter, BadStringsAreErrors) {
  const auto message = [](const Strings& stop) { return test::message_of([&] { check_stop(stop); }); };
  EXPECT_EQ(message({"a", ""}), "[generate] stop: expected at least one character, found an empty string");
  EXPECT_EQ(message({std::string(1025, 'a')}), "[generate] stop: expected at most 1024 bytes, found 1025");
  EXPECT_EQ(message(Strings(65, "a")), "[generate] stop: expected at most 64 strings, found 65");
  EXPECT_EQ(message({"a\xC3"}), "[generate] stop: expected UTF-8, found 'a\\xc3'");
  EXPECT_EQ(message({"a", "\n", std::string(1024, 'a')}), "no error");
}

}  // namespace
}  // namespace quern
