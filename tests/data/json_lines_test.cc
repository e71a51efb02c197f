#include "data/json_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/files.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;
using Texts = std::vector<std::string>;

Texts texts_of(std::string_view content, std::string_view field = "text") {
  Texts texts;
  for_each_json_line({content, "a.jsonl", 0, field}, [&texts](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

std::string error_in(std::string_view content, std::string_view field = "text") {
  return error_of([&] { texts_of(content, field); });
}

TEST(JsonLines, ReadsTheTextOfEveryLine) {
  EXPECT_EQ(texts_of("{\"text\":\"one\"}\n{\"text\": \"two\"}"), (Texts{"one", "two"}));
  EXPECT_EQ(texts_of("{\"text\":\"one\"}\r\n\r\n  \n{\"text\":\"\"}\n"), (Texts{"one", ""}));
  EXPECT_EQ(texts_of(""), Texts{});
}

TEST(JsonLines, DecodesEscapes) {
  EXPECT_EQ(texts_of(R"({"text":"a\n\"b\" \u00e4 \ud83d\ude00"})"), (Texts{"a\n\"b\" \xC3\xA4 \xF0\x9F\x98\x80"}));
}

TEST(JsonLines, IgnoresOtherFieldsAndNestedOnesOfTheSameName) {
  EXPECT_EQ(texts_of(R"({"id":7,"meta":{"text":"inner","list":[1,{"text":2}]},"text":"outer","score":null})"),
            (Texts{"outer"}));
  EXPECT_EQ(texts_of(R"({"a":[{"text":1}],"text":"first","text":"last"})"), (Texts{"last"}));
}

TEST(JsonLines, ErrorsNameFileLineAndWhatWasFound) {
  EXPECT_EQ(error_in("{\"text\":\"one\"}\n\n{\"text\":3}"),
            "[data] a.jsonl:3: expected a JSON object with a string field \"text\", found a number in the field");
  EXPECT_TRUE(contains(error_in("{\"text\":\"o"), "a.jsonl:1: "));
  EXPECT_TRUE(contains(error_in("{\"text\":\"o"), "found a syntax error at byte 11 of the line"));
  EXPECT_TRUE(contains(error_in("[\"text\"]"), "found an array"));
  EXPECT_TRUE(contains(error_in("\"text\""), "found a string"));
  EXPECT_TRUE(contains(error_in("17"), "found a number"));
  EXPECT_TRUE(contains(error_in("{}"), "found no such field"));
  EXPECT_TRUE(contains(error_in("{\"Text\":\"a\"}"), "found no such field"));
  EXPECT_TRUE(contains(error_in("{\"text\":{\"text\":\"a\"}}"), "found an object in the field"));
  EXPECT_TRUE(contains(error_in("{\"text\":[\"a\"]}"), "found an array in the field"));
  EXPECT_TRUE(contains(error_in("{\"text\":\"a\"} x"), "syntax error"));
  EXPECT_TRUE(contains(error_in("{\"text\":\"\xff\"}"), "syntax error"));
  EXPECT_TRUE(contains(error_in("plain text"), "syntax error"));
}

TEST(JsonLines, ReadsAnotherField) {
  EXPECT_EQ(texts_of(R"({"text":"no","body":"yes"})", "body"), Texts{"yes"});
  const char* nested = R"({"a":{"c":"no","b":{"c":"yes"}},"b":{"c":"no"},"c":"no","d":[{"a":{"b":{"c":"no"}}}]})";
  EXPECT_EQ(texts_of(nested, "a.b.c"), Texts{"yes"});
  EXPECT_EQ(texts_of(R"({"a.b":"flat"})", "a.b"), Texts{"flat"});
  EXPECT_EQ(texts_of(R"({"a":{"b":"first"},"a":{"b":"last"}})", "a.b"), Texts{"last"});
  EXPECT_TRUE(contains(error_in(R"({"a":{"b":{}}})", "a.b"), "found an object in the field"));
  EXPECT_TRUE(contains(error_in(R"({"a":"b"})", "a.b"), "found no such field"));
  EXPECT_TRUE(contains(error_in(R"({"a":[{"b":"c"}]})", "a.b"), "found no such field"));
}

TEST(JsonLines, ListsTheFieldsThatAreThere) {
  EXPECT_EQ(error_in(R"({"id":1,"body":"x","meta":{"text":"y"},"tags":[1],"done":null})"),
            "[data] a.jsonl:1: expected a JSON object with a string field \"text\", found no such field but 'id' (a "
            "number), 'body' (a string), 'meta' (an object), 'tags' (an array), 'done' (null); choose one with "
            "data.field");
  EXPECT_TRUE(contains(error_in("{}", "body"), "field \"body\", found no such field and no other"));
  std::string many = "{\"a\":1";
  for (int i = 0; i < 100; ++i) many += ",\"field" + std::to_string(i) + "\":\"x\"";
  EXPECT_LT(error_in(many + "}").size(), 400u);
  EXPECT_TRUE(contains(error_in("{\"a\\nb\\u001b\":1}"), "'a\\x0ab\\x1b' (a number)"));
}

TEST(JsonLines, VisitsTheLinesBeforeABadOne) {
  Texts texts;
  const auto visit = [&texts](std::string_view text) { texts.emplace_back(text); };
  EXPECT_THROW(for_each_json_line({"{\"text\":\"one\"}\nbad\n", "a"}, visit), Error);
  EXPECT_EQ(texts, Texts{"one"});
}

// A recursive parser would need a stack frame for each.
TEST(JsonLines, SurvivesDeepNesting) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_EQ(texts_of("{\"a\":" + deep + ",\"text\":\"b\"}"), Texts{"b"});
  EXPECT_TRUE(contains(error_in("{\"a\":" + std::string(1000000, '[')), "syntax error"));
}

TEST(JsonLines, MutatedInputsAreReadOrRejected) {
  const std::string valid =
      "{\"text\":\"A story.\\n\\u00e4 \\ud83d\\ude00\",\"meta\":{\"id\":12,\"x\":[1.5e3,true,null]}}\n"
      "{\"id\":-4,\"text\":\"Another \xC3\xA4 one\"}\n";
  std::mt19937 random(1);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    try {
      const std::string content = test::mutated(valid, random);
      for (const std::string& text : texts_of(content)) EXPECT_LE(text.size(), content.size());
      ++read;
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(contains(error.what(), "[data] a.jsonl:"));
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace quern::data
