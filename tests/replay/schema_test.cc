#include "replay/schema.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message.h"
#include "tests/support/mutation.h"

namespace quern::replay {
namespace {

using test::message_of;

Schema example() {
  return Schema(
      {{.name = "planes", .dtype = DType::kF32, .shape = {122, 8, 8}, .encoding = Encoding::kBits},
       {.name = "policy", .dtype = DType::kF16, .shape = {4672}, .encoding = Encoding::kSparse, .max_nonzero = 218},
       {.name = "W\xC3\xA4rme \"x\"\n", .dtype = DType::kI64}});
}

std::string message(const Column& column) {
  return message_of([&] { Schema({column}); });
}

TEST(Schema, CountsBytes) {
  const Schema schema = example();
  EXPECT_EQ(schema.columns()[0].elements(), 7808u);
  EXPECT_EQ(schema.columns()[0].value_bytes(), 31232u);
  EXPECT_EQ(schema.columns()[0].stored_bytes(), 976u);
  EXPECT_EQ(schema.columns()[1].stored_bytes(), 4 + 218 * 2 + 218 * 2u);
  EXPECT_EQ(schema.columns()[2].elements(), 1u);
  EXPECT_EQ(schema.value_bytes(), 31232 + 9344 + 8u);
  EXPECT_EQ(schema.stored_bytes(), 976 + 876 + 8u);
}

// The values of a sparse row start at a multiple of their size: 4 + 3 * 2 = 10 becomes 16 for 8-byte ones; beyond 65536
// elements an index takes 4 bytes.
TEST(Schema, SparseRowsAlignTheirValues) {
  const auto bytes = [](DType dtype, size_t elements) {
    return Column{.name = "a", .dtype = dtype, .shape = {elements}, .encoding = Encoding::kSparse, .max_nonzero = 3}
        .stored_bytes();
  };
  EXPECT_EQ(bytes(DType::kF64, 65536), 16 + 24u);
  EXPECT_EQ(bytes(DType::kF32, 65536), 12 + 12u);
  EXPECT_EQ(bytes(DType::kU8, 65536), 10 + 3u);
  EXPECT_EQ(bytes(DType::kF64, 65537), 16 + 24u);
  EXPECT_EQ(bytes(DType::kU16, 65537), 16 + 6u);
}

TEST(Schema, TextRoundTrips) {
  const Schema schema = example();
  EXPECT_EQ(Schema::from_text(schema.text()), schema);
  EXPECT_EQ(Schema::from_text(schema.text()).text(), schema.text());
  EXPECT_EQ(schema.text().find('\n'), std::string::npos);
  EXPECT_EQ(Schema({{.name = "a", .dtype = DType::kBool, .shape = {2, 3}}}).text(),
            R"({"columns":[{"name":"a","dtype":"bool","shape":[2,3]}]})");
}

TEST(Schema, EveryDTypeHasItsName) {
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  }
  EXPECT_EQ(size_of(DType::kBool), 1u);
  EXPECT_EQ(size_of(DType::kF16), 2u);
  EXPECT_EQ(size_of(DType::kF64), 8u);
  EXPECT_EQ(message_of([] { dtype_named("float8"); }),
            "[replay] expected a dtype of bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, "
            "float32 or float64, found 'float8'");
  EXPECT_EQ(message_of([] { encoding_named("zip"); }),
            "[replay] expected an encoding of raw, bits or sparse, found 'zip'");
}

TEST(Schema, RejectsInvalidColumns) {
  EXPECT_EQ(message_of([] { Schema({}); }), "[replay] expected 1 to 64 columns, found 0");
  EXPECT_EQ(message({.name = ""}),
            "[replay] expected a column's name of 1 to 255 bytes of UTF-8 without a zero byte, found '' of 0 bytes");
  EXPECT_NE(message({.name = std::string("a\0b", 3)}).find("of 3 bytes"), std::string::npos);
  EXPECT_NE(message({.name = std::string(256, 'a')}).find("of 256 bytes"), std::string::npos);
  EXPECT_NE(message({.name = "\xFF"}).find("UTF-8"), std::string::npos);
  EXPECT_EQ(message_of([] {
              Schema({{.name = "a"}, {.name = "a"}});
            }),
            "[replay] expected each column's name once, found 'a' twice");
  EXPECT_EQ(message({.name = "a", .shape = {3, 0}}),
            "[replay] column 'a': expected a shape without a zero, found (3, 0)");
  EXPECT_NE(message({.name = "a", .shape = {1 << 20, 1 << 13}}).find("at most 4294967296 elements"), std::string::npos);
  EXPECT_NE(message({.name = "a", .shape = {size_t{1} << 63, 4}}).find("at most"), std::string::npos);
  EXPECT_NE(message({.name = "a", .shape = std::vector<size_t>(33, 1)}).find("32 dimensions"), std::string::npos);
  EXPECT_EQ(message({.name = "a", .shape = {9}, .encoding = Encoding::kSparse}),
            "[replay] column 'a': expected `max_nonzero` from 1 to 9, the elements of a row, found 0");
  EXPECT_NE(message({.name = "a", .shape = {9}, .encoding = Encoding::kSparse, .max_nonzero = 10}).find("found 10"),
            std::string::npos);
  // A row counts its values in 32 bits: as 2^32 of them are none, every value was dropped.
  const std::vector<size_t> largest = {size_t{1} << 32};
  EXPECT_EQ(message({.name = "a", .shape = largest, .encoding = Encoding::kSparse, .max_nonzero = largest[0]}),
            "[replay] column 'a': expected `max_nonzero` of at most 4294967295, found 4294967296; store it raw");
  EXPECT_EQ(message({.name = "a", .shape = largest, .encoding = Encoding::kSparse, .max_nonzero = largest[0] - 1}),
            "no error");
  EXPECT_NE(message({.name = "a", .max_nonzero = 1}).find("only with encoding 'sparse'"), std::string::npos);
}

TEST(Schema, NamesTheColumnThatDiffers) {
  const Schema ours({{.name = "a", .dtype = DType::kF32, .shape = {3}}, {.name = "b", .dtype = DType::kU8}});
  const Schema theirs({{.name = "a", .dtype = DType::kF32, .shape = {3}}, {.name = "b", .dtype = DType::kI8}});
  EXPECT_EQ(message_of([&] { ours.expect_same(theirs, "[replay] x"); }),
            "[replay] x: column 1: expected 'b' uint8 (), found 'b' int8 ()");
  EXPECT_EQ(message_of([&] { ours.expect_same(ours, ""); }), "no error");
  EXPECT_EQ(message_of([&] { ours.index_of("c"); }), "[replay] expected a column of a, b, found 'c'");
  EXPECT_EQ(ours.index_of("b"), 1u);
}

// Any text is rejected with an Error, or is a schema that round-trips.
TEST(Schema, AnyTextIsASchemaOrAnError) {
  test::Mutator mutator({example().text(), Schema({{.name = "a", .shape = {2}}}).text()},
                        {"\"shape\":", "[", "]", "{}", "18446744073709551616", "-1", "1e9", "null", "\"sparse\"", "0",
                         "\"columns\":[]", "\"most\":4294967296"},
                        7);
  size_t good = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutator.next();
    try {
      const Schema schema = Schema::from_text(text);
      EXPECT_EQ(Schema::from_text(schema.text()), schema) << text;
      ++good;
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).find("[replay]"), 0u) << error.what();
    }
  }
  EXPECT_GT(good, 100u);  // changed names, for example
  EXPECT_LT(good, 19000u);
}

}  // namespace
}  // namespace quern::replay
