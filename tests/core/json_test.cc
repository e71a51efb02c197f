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
  }
}

}  // namespace
}  // namespace quern
