#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/error.h"
#include "core/files.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::safetensors {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// A file by hand: what stands in it is not what write() would write.
std::string file_of(const std::string& header, size_t values) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file + header + std::string(values, 'v');
}

std::string message_of(const std::string& file) {
  try {
    parse(bytes_of(file), "a.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_MESSAGE(part, file) EXPECT_PRED2(contains, message_of(file), part)
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Safetensors, ReadsBackWhatItWrote) {
  const test::TemporaryFolder folder;
  std::vector<float> floats(6);
  std::iota(floats.begin(), floats.end(), 1.5f);
  const std::vector<uint16_t> halves = {1, 2, 3};
  const std::vector<int64_t> longs = {-5};
  const std::vector<Tensor> tensors = {
      {"z.weight", Dtype::kF32, {2, 3}, std::as_bytes(std::span(floats))},
      {"half \"quoted\" \xc3\xa9", Dtype::kF16, {3, 1}, std::as_bytes(std::span(halves))},
      {"brain", Dtype::kBF16, {3}, std::as_bytes(std::span(halves))},
      {"nothing", Dtype::kF32, {0, 7}, {}},
      {"scalar", Dtype::kI64, {}, std::as_bytes(std::span(longs))}};
  const Metadata metadata = {{"format", "pt"}, {"note", "two\nlines"}};
  FileWriter writer(folder / "a.safetensors");
  const Stamp stamp = write(writer, tensors, metadata);
  writer.close();

  const File file(folder / "a.safetensors");
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const Tensor& tensor : tensors) {
    const Tensor* found = file.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    ASSERT_EQ(found->bytes.size(), tensor.bytes.size());
    EXPECT_TRUE(std::equal(found->bytes.begin(), found->bytes.end(), tensor.bytes.begin()));
  }
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.find("z.weight")->bytes.data()) % 64, 0u);
  EXPECT_EQ(stamp.bytes, file.bytes().size());
  EXPECT_EQ(to_hex(stamp.sha256), sha256_hex(file.bytes()));
}

TEST(Safetensors, EmptyFileOfNoTensors) {
  const test::TemporaryFolder folder;
  FileWriter writer(folder / "a.safetensors");
  write(writer, {});
  writer.close();
  EXPECT_TRUE(File(folder / "a.safetensors").tensors().empty());
}

TEST(Safetensors, RefusesToWriteWhatNobodyCouldRead) {
  const test::TemporaryFolder folder;
  const float value = 1.0f;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  const std::vector<Tensor> twice = {{"a", Dtype::kF32, {1}, bytes}, {"a", Dtype::kF32, {1}, bytes}};
  const std::vector<Tensor> reserved = {{"__metadata__", Dtype::kF32, {1}, bytes}};
  const std::vector<Tensor> latin1 = {{"\xe9", Dtype::kF32, {1}, bytes}};
  FileWriter writer(folder / "a");
  EXPECT_THROW(write(writer, twice), Error);
  EXPECT_THROW(write(writer, reserved), Error);
  EXPECT_THROW(write(writer, latin1), Error);
  EXPECT_THROW(write(writer, {}, {{"key", "\xff"}}), Error);
  EXPECT_EQ(writer.written(), 0u);
}

TEST(Safetensors, ReadsWhatTheHuggingFaceLibraryWrites) {
  const std::string file =
      file_of(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
              R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}}       )",
              24);
  const Contents contents = parse(bytes_of(file), "a.safetensors");
  ASSERT_EQ(contents.tensors.size(), 2u);
  EXPECT_EQ(contents.tensors[0].name, "b");
  EXPECT_EQ(contents.tensors[1].name, "a");
  EXPECT_EQ(contents.tensors[1].shape, (std::vector<size_t>{2, 2}));
}

TEST(Safetensors, NamesWhatIsWrong) {
  const auto entry = [](const std::string& fields, size_t values = 8) {
    return file_of("{\"a\":{" + fields + "}}", values);
  };
  EXPECT_MESSAGE("expected at least 8 bytes, found 3", "abc");
  EXPECT_MESSAGE("expected at most 100000000, found 18446744073709551615", std::string(8, '\xff') + "{}");
  EXPECT_MESSAGE("expected a header of 100 bytes, found 2", std::string("d\0\0\0\0\0\0\0{}", 10));
  EXPECT_MESSAGE("expected '{' at the start", file_of(" {}", 0));
  EXPECT_MESSAGE("expected '{' at the start", file_of("", 0));
  EXPECT_MESSAGE("header: byte 5: expected JSON", file_of("{\"a\"x}", 0));
  EXPECT_MESSAGE("tensor 'a': expected an object, found a number", file_of("{\"a\":1}", 0));
  EXPECT_MESSAGE("expected dtype, shape and data_offsets, found no dtype", entry(""));
  EXPECT_MESSAGE("expected BOOL, U8", entry(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"));
  EXPECT_MESSAGE("'shape': expected an array, found a number",
                 entry(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"));
  EXPECT_MESSAGE("expected whole numbers from 0, found a negative", entry(R"("dtype":"F32","shape":[-2])"));
  EXPECT_MESSAGE("expected whole numbers from 0, found a fraction", entry(R"("dtype":"F32","shape":[2.0])"));
  EXPECT_MESSAGE("expected whole numbers from 0, found an array", entry(R"("shape":[[2]])"));
  EXPECT_MESSAGE("expected two offsets, found more", entry(R"("data_offsets":[0,8,9])"));
  EXPECT_MESSAGE("expected two offsets, found one or none", entry(R"("data_offsets":[0])"));
  EXPECT_MESSAGE("expected it once, found it twice", entry(R"("shape":[2],"shape":[2])"));
  EXPECT_MESSAGE("expected dtype, shape or data_offsets, found text", entry(R"("color":"red")"));
  EXPECT_MESSAGE("expected 12 bytes for its shape, found 8",
                 entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"));
  EXPECT_MESSAGE("more than 2^64", entry(R"("dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8])"));
  EXPECT_MESSAGE("up to 8, found 0 to 12", entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])"));
  EXPECT_MESSAGE("found 8 to 0", entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"));
  EXPECT_MESSAGE("expected values to start at 0", entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"));
  EXPECT_MESSAGE("expected 8 bytes of values, found 9", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 9));
  EXPECT_MESSAGE("__metadata__: expected text for 'k', found a number", file_of(R"({"__metadata__":{"k":1}})", 0));
  const std::string one = R"("dtype":"F32","shape":[1],"data_offsets":)";
  EXPECT_MESSAGE("found 'a' twice", file_of("{\"a\":{" + one + "[0,4]},\"a\":{" + one + "[4,8]}}", 8));
  EXPECT_MESSAGE("expected values to start at 4", file_of("{\"a\":{" + one + "[0,4]},\"b\":{" + one + "[0,4]}}", 4));
  EXPECT_MESSAGE("expected values to start at 4", file_of("{\"a\":{" + one + "[0,4]},\"b\":{" + one + "[8,12]}}", 12));
}

TEST(Safetensors, DeepNestingIsRefusedAtOnce) {
  EXPECT_MESSAGE("expected an object, found an array", file_of("{\"a\":" + std::string(5'000'000, '['), 0));
}

// Every cut is noticed, wherever it falls.
TEST(Safetensors, NoPrefixOfAFileIsAccepted) {
  const std::string file = file_of(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}} )", 16);
  EXPECT_EQ(message_of(file), "no error");
  for (size_t length = 0; length < file.size(); ++length) EXPECT_NE(message_of(file.substr(0, length)), "no error");
}

// What is accepted keeps its promises: views inside the file, of the size of their shape, without gaps.
TEST(Safetensors, SurvivesTwentyThousandDamagedFiles) {
  const std::string one = file_of(
      R"({"__metadata__":{"format":"pt"},"h.0.attn.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("h.0.attn.bias":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"n":{"dtype":"I64","shape":[],"data_offsets":[32,40]}})",
      40);
  const std::string two = file_of(R"({"a":{"dtype":"F16","shape":[0,9],"data_offsets":[0,0]}})", 0);
  test::Mutator mutator(
      {one, two},
      {"18446744073709551615", "-1", "1e300", "{", "}", "[", "]", "\"shape\":", "\"F64\"", "null", "[0,24]",
       "\"__metadata__\"", std::string(8, '\0'), std::string("\xff\xff\xff\xff\0\0\0\0", 8), "\xc3"},
      1);
  size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string file = mutator.next();
    try {
      size_t total = 0;
      for (const Tensor& tensor : parse(bytes_of(file), "mutated").tensors) {
        size_t size = dtype_bytes(tensor.dtype);
        for (const size_t extent : tensor.shape) size *= extent;
        ASSERT_EQ(size, tensor.bytes.size());
        total += size;
      }
      ASSERT_LE(total, file.size());
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    }
  }
  EXPECT_GT(accepted, 100u);  // damages to values or names change nothing that is checked
  EXPECT_LT(accepted, 15'000u);
}

}  // namespace
}  // namespace quern::safetensors
