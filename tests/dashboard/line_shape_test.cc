#include "dashboard/line_shape.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "core/json.h"

namespace quern::dashboard {
namespace {

using Paths = std::vector<std::vector<std::string_view>>;

TEST(LineShape, KnowsWhereTheNumbersAre) {
  const std::string line = R"({"step":10,"loss":1.5,"skipped":true,"memory":{"peak":7,"of":{"x":null}}})";
  Paths paths;
  const auto shape = LineShape::of(line, paths);
  ASSERT_TRUE(shape);
  EXPECT_EQ(paths, (Paths{{"step"}, {"loss"}, {"skipped"}, {"memory", "peak"}, {"memory", "of", "x"}}));
  std::vector<LineValue> values(5);
  ASSERT_TRUE(shape->read(R"({"step":99,"loss":-2e-3,"skipped":false,"memory":{"peak":0,"of":{"x":4}}})", values));
  EXPECT_EQ(values[0].digits, 99u);
  EXPECT_TRUE(values[0].whole);
  EXPECT_EQ(values[1].number, -2e-3);
  EXPECT_EQ(values[2].number, 0);
  EXPECT_EQ(values[4].number, 4);
}

TEST(LineShape, RefusesWhatIsNotOfTheShape) {
  Paths paths;
  const auto shape = LineShape::of(R"({"step":10,"loss":1.5})", paths);
  ASSERT_TRUE(shape);
  std::vector<LineValue> values(2);
  for (const char* line : {"", "{", R"({"step":10,"loss":1.5)", R"({"step":10,"loss":1.5}})", R"({"step":10,"loss":})",
                           R"({"step":10,"loss":01.5})", R"({"step":10,"loss":1.})", R"({"step":10,"loss":.5})",
                           R"({"step":10,"loss":+1})", R"({"step":10,"loss":-})", R"({"step":10,"loss":1e})",
                           R"({"step":10,"loss":nul})", R"({"step":10,"loss":"1"})", R"({"step":10,"rate":1.5})",
                           R"({"step":10,"loss":NaN})", R"({"step":10,"loss":1.5e+})", R"(x)"}) {
    EXPECT_FALSE(shape->read(line, values)) << line;
  }
}

TEST(LineShape, LeavesTextAndArraysToTheSlowWay) {
  Paths paths;
  for (const char* line : {R"({"step":10,"warning":"x"})", R"({"step":10,"list":[1,2]})", R"(["step"])", R"("step")",
                           "", "{", "}", R"({"step)",
                           R"({"step":1)"
                           "}}"}) {
    const auto shape = LineShape::of(line, paths);
    // What is no JSON may have a shape: the parser is asked first.
    if (shape && std::string(line).find_first_of("[w") != std::string::npos) ADD_FAILURE() << line;
  }
}

TEST(LineShape, RefusesNumbersThatNoDoubleIs) {
  for (const std::string text : {"1e400", "-1e400", "1e999999999999", "123456789e305"}) {
    const char* at = text.data();
    LineValue value;
    EXPECT_FALSE(read_value(at, text.data() + text.size(), value)) << text;
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  }
}

TEST(LineShape, ReadsNumbersLikeTheParser) {
  std::mt19937_64 random(3);
  std::vector<std::string> texts = {"0",
                                    "-0",
                                    "0.0",
                                    "1e-400",
                                    "4.9e-324",
                                    "1.7976931348623157e308",
                                    "18446744073709551615",
                                    "18446744073709551616",
                                    "0.1",
                                    "1E5",
                                    "1e+5",
                                    "123456789012345678901234567890",
                                    "0.000000000000000000000000000000123456789012345678901234567890",
                                    "1e-00005"};
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) texts.push_back(fmt::format("{}", value));
    texts.push_back(fmt::format("{}", static_cast<double>(random() % 1'000'000) / 997));
    texts.push_back(fmt::format("{}", static_cast<float>(random() % 1'000'000) / 997.f));
    texts.push_back(fmt::format("{}", random()));
  }
  for (const std::string& text : texts) {
    const char* at = text.data();
    LineValue value;
    ASSERT_TRUE(read_value(at, text.data() + text.size(), value)) << text;
    EXPECT_EQ(at, text.data() + text.size()) << text;
    const double expected = std::strtod(text.c_str(), nullptr);
    if (std::isinf(expected) || std::abs(expected) < 1e-300) {
      EXPECT_EQ(static_cast<float>(value.number), static_cast<float>(expected)) << text;
    } else {
      EXPECT_NEAR(value.number / (expected == 0 ? 1 : expected), expected == 0 ? 0 : 1, 1e-15) << text;
    }
  }
}

}  // namespace
}  // namespace quern::dashboard
