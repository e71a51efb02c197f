#include "core/json.h"

#include <gtest/gtest.h>

#include <string>

namespace quern {
namespace {

std::string nested(size_t depth, std::string_view open, std::string_view middle, std::string_view close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += middle;
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(Json, NestingIsAcceptedUpToTheLimit) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth, "[", "1", "]")).is_array());
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth, "{\"a\":", "1", "}")).is_object());
  EXPECT_TRUE(parse_ordered_json(nested(kMaxJsonDepth / 2, "[{\"a\":", "1", "}]")).is_array());
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth + 1, "[", "1", "]")).is_discarded());
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth + 1, "{\"a\":", "1", "}")).is_discarded());
}

// Printing such a value, as an error message does, overflowed the stack.
TEST(Json, AMillionBracketsAreRejected) {
  for (const std::string_view close : {"]", ""}) {
    EXPECT_TRUE(parse_json(nested(1'000'000, "[", "", close)).is_discarded());
    EXPECT_TRUE(parse_json("{\"step\":1,\"loss\":" + nested(1'000'000, "[", "", close) + "}").is_discarded());
  }
}

TEST(Json, BracketsInTextDoNotCount) {
  const std::string brackets(1000, '[');
  EXPECT_TRUE(parse_json("[\"" + brackets + "\"]").is_array());
  EXPECT_TRUE(parse_json("{\"" + brackets + "\":[]}").is_object());
  EXPECT_TRUE(parse_json("[\"\\\"" + brackets + "\\\\\"]").is_array());
  EXPECT_TRUE(parse_json("[\"\\\\\"," + brackets + "]").is_discarded());
  EXPECT_EQ(parse_json("[" + nested(500, "[],", "", "") + "1]").size(), 501u);
}

TEST(Json, InvalidJsonIsDiscarded) {
  for (const std::string_view text : {"", "{", "]", "{\"a\":}", "\"", "nul", "[1,]", "1e999"}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
    EXPECT_GT(json_error_byte(text), 0u) << text;
  }
}

TEST(Json, TheByteOfAnError) {
  EXPECT_EQ(json_error_byte("{\"a\": [1, 2.5, true, null, \"b\", -3, {}]}"), 0u);
  EXPECT_EQ(json_error_byte("{\"a\": x}"), 7u);
  EXPECT_EQ(json_error_byte("[1, 2"), 6u);  // after the end
  EXPECT_EQ(json_error_byte("[1] [2]"), 5u);
  EXPECT_EQ(json_error_byte("[1e999]"), 6u);  // a number without a value
  EXPECT_GT(json_error_byte(nested(1'000'000, "[", "", "")), 1'000'000u);
}

}  // namespace
}  // namespace quern
