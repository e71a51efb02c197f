#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "formats/gguf_writer.h"
#include "support/message.h"
#include "support/support.h"
#include "support/temporary_folder.h"
#include "tests/formats/gguf_bytes.h"

namespace quern::formats {
namespace {

GgufContents parse(const std::string& file) { return parse_gguf(std::as_bytes(std::span(file)), "a.gguf"); }

std::string message_of(const std::string& file) {
  return test::message_of([&] { parse(file); });
}

#define EXPECT_MESSAGE(part, file) EXPECT_PRED2(contains, message_of(file), part)
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

GgufFile opened(const test::TemporaryFolder& folder, const std::string& bytes) {
  std::ofstream(folder / "a.gguf", std::ios::binary) << bytes;
  return GgufFile(folder / "a.gguf");
}

TEST(Gguf, ReadsKeysAndTensors) {
  const test::TemporaryFolder folder;
  const GgufFile file = opened(folder, good_gguf());
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.whole("a.whole", 100), 7u);
  EXPECT_EQ(file.real("a.real", 0, 1), 0.5);
  EXPECT_EQ(file.real("a.whole", 0, 10), 7.0);
  EXPECT_TRUE(file.flag("a.flag"));
  EXPECT_EQ(file.texts("a.texts"), (std::vector<std::string_view>{"x", "", "yz"}));
  EXPECT_EQ(file.whole_list("a.numbers"), (std::vector<int32_t>{-1, 9}));
  EXPECT_FALSE(file.contains("a"));
  ASSERT_EQ(file.tensors().size(), 2u);
  const GgufTensor* weight = file.find_tensor("m.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<size_t>{3, 64}));
  EXPECT_EQ(weight->type, GgmlType::kQ8_0);
  EXPECT_EQ(weight->bytes.size(), 3u * 2 * 34);
  EXPECT_EQ(file.find_tensor("m.bias")->bytes.size(), 12u);
  EXPECT_EQ(file.find_tensor("m"), nullptr);
}

TEST(Gguf, AKeyOfAnotherTypeOrRangeIsAnError) {
  const test::TemporaryFolder folder;
  const GgufFile file = opened(folder, good_gguf());
  const auto message = [&](const auto& body) { return test::message_of(body); };
  EXPECT_PRED2(contains, message([&] { file.whole("a.negative", 9); }),
               "key 'a.negative': expected a whole number from 0 to 9, found -3");
  EXPECT_PRED2(contains, message([&] { file.whole("a.whole", 6); }), "expected a whole number from 0 to 6, found 7");
  EXPECT_PRED2(contains, message([&] { file.whole("a.real", 6); }), "found 0.5");
  EXPECT_PRED2(contains, message([&] { file.whole("a.numbers", 6); }), "found an array of 2");
  EXPECT_PRED2(contains, message([&] { file.text("a.flag"); }), "expected a string, found true");
  EXPECT_PRED2(contains, message([&] { file.flag("general.architecture"); }), "expected a bool, found 'llama'");
  EXPECT_PRED2(contains, message([&] { file.texts("a.numbers"); }), "expected an array of strings");
  EXPECT_PRED2(contains, message([&] { file.real_list("a.numbers"); }), "expected an array of f32");
  EXPECT_PRED2(contains, message([&] { file.text("none"); }), "key 'none': expected this key, found none");
}

TEST(Gguf, VersionTwoIsTheSame) {
  std::string file = good_gguf();
  file[4] = 2;
  EXPECT_EQ(message_of(file), "no error");
  file[4] = 1;
  EXPECT_MESSAGE("expected version 2 or 3, found 1", file);
  file[4] = 4;
  EXPECT_MESSAGE("found 4", file);
  file[4] = 0;
  file[7] = 3;
  EXPECT_MESSAGE("found a big-endian file", file);
}

TEST(Gguf, RefusesOtherFiles) {
  EXPECT_MESSAGE("magic, at byte 0: expected 4 bytes, found 0 before the end", std::string());
  EXPECT_MESSAGE("expected a GGUF file, which starts with GGUF, found 'GGML'", std::string("GGML1234"));
}

TEST(Gguf, CountsAreLimitedByTheSizeOfTheFile) {
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  EXPECT_MESSAGE("number of tensors", GgufBytes().start(kHuge, 0));
  EXPECT_MESSAGE("number of keys", GgufBytes().start(0, kHuge));
  EXPECT_MESSAGE(
      "expected at most 2 strings",
      GgufBytes().start(0, 1).text("a").put(uint32_t{9}).put(uint32_t{8}).put(kHuge).put(uint64_t{0}).put(uint64_t{0}));
  EXPECT_MESSAGE("expected at most 2 values", GgufBytes()
                                                  .start(0, 1)
                                                  .text("a")
                                                  .put(uint32_t{9})
                                                  .put(uint32_t{10})
                                                  .put(kHuge)
                                                  .put(uint64_t{0})
                                                  .put(uint64_t{0}));
  EXPECT_MESSAGE("the name of a key, at byte 32: expected at most 65535 bytes",
                 GgufBytes().start(0, 1).put(kHuge).put(uint64_t{0}));
  EXPECT_MESSAGE("key 'a', at byte 45: expected 1152921504606846976 bytes, found 0 before the end",
                 GgufBytes().start(0, 1).text("a").put(uint32_t{8}).put(kHuge));
}

TEST(Gguf, RefusesKeysThatNoReaderAccepts) {
  EXPECT_MESSAGE("key 'a': expected it once, found it twice",
                 GgufBytes().start(0, 2).key("a", 0, uint8_t{1}).key("a", 0, uint8_t{2}));
  EXPECT_MESSAGE("expected a type of 0 to 12, found 13", GgufBytes().start(0, 1).key("a", 13, uint8_t{1}));
  EXPECT_MESSAGE("found one of arrays",
                 GgufBytes().start(0, 1).text("a").put(uint32_t{9}).put(uint32_t{9}).put(uint64_t{0}));
  EXPECT_MESSAGE("expected 0 or 1 for a bool", GgufBytes().start(0, 1).key("a", 7, uint8_t{2}));
  EXPECT_MESSAGE("expected UTF-8", GgufBytes().start(0, 1).key("\xff", 0, uint8_t{1}));
  EXPECT_MESSAGE("expected UTF-8", GgufBytes().start(0, 1).key("", 0, uint32_t{1}));
  for (const uint32_t alignment : {0u, 3u, 48u}) {
    EXPECT_MESSAGE("expected a power of two", GgufBytes().start(0, 1).key("general.alignment", 4, alignment));
  }
  EXPECT_MESSAGE("found another type", GgufBytes().start(0, 1).key("general.alignment", 10, uint64_t{32}));
}

TEST(Gguf, RefusesTensorsThatDoNotFitTheFile) {
  const auto one = [](const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset, size_t bytes) {
    return GgufBytes().start(1, 0).tensor("t", sizes, type, offset).values(bytes);
  };
  EXPECT_EQ(message_of(one({4}, 0, 0, 16)), "no error");
  EXPECT_MESSAGE("expected 16 bytes of values at offset 0, found 15", one({4}, 0, 0, 15));
  EXPECT_MESSAGE("expected its values at offset 0, where the previous tensor ends, found 32", one({4}, 0, 32, 64));
  EXPECT_MESSAGE("expected 1 to 4 dimensions, found 0", one({}, 0, 0, 16));
  EXPECT_MESSAGE("expected 1 to 4 dimensions, found 5", one({1, 1, 1, 1, 1}, 0, 0, 16));
  EXPECT_MESSAGE("expected sizes from 1", one({0, 4}, 0, 0, 16));
  EXPECT_MESSAGE("expected sizes from 1", one({uint64_t{1} << 33, uint64_t{1} << 33}, 0, 0, 16));
  EXPECT_MESSAGE("expected fewer than 2^64 bytes", one({uint64_t{1} << 63}, 0, 0, 16));
  EXPECT_MESSAGE("expected rows of Q8_0 with a multiple of 32 values, found 33", one({33}, 8, 0, 64));
  EXPECT_MESSAGE("expected a type of ggml, found type 5", one({4}, 5, 0, 16));
  EXPECT_MESSAGE("expected at most 63 bytes",
                 GgufBytes().start(1, 0).tensor(std::string(64, 't'), {4}, 0, 0).values(16));
  EXPECT_MESSAGE("tensor 't': expected it once, found it twice",
                 GgufBytes().start(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).values(64));
  EXPECT_MESSAGE("expected its values at offset 32",
                 GgufBytes().start(2, 0).tensor("t", {8}, 0, 0).tensor("u", {8}, 0, 0).values(64));
}

TEST(Gguf, ReadsBackWhatItWrote) {
  const test::TemporaryFolder folder;
  const std::vector<float> values = test::normal(3 * 64, 1);
  GgufKeys keys;
  keys.add_text("general.architecture", "gpt2");
  keys.add_whole("w", 4'000'000'000);
  keys.add_real("r", 1e-5);
  keys.add_flag("f", true);
  keys.add_texts("t", {"a", "", "\xc4\xa0the"});
  keys.add_whole_list("l", {1, -2});
  keys.add_real_list("s", {-1.5f});
  const std::vector<GgufOutputTensor> tensors = {
      {memory_tensor("matrix", {3, 64}, values), GgmlType::kF32},
      {memory_tensor("vector", {3}, std::span(values).first(3)), GgmlType::kF32},
      {memory_tensor("half", {3, 64}, values), GgmlType::kF16},
      {memory_tensor("blocks", {3, 64}, values), GgmlType::kQ8_0},
  };
  {
    AtomicFile out(folder / "a.gguf");
    write_gguf(out.writer(), keys, tensors);
    out.commit();
  }
  const GgufFile file(folder / "a.gguf");
  EXPECT_EQ(file.text("general.architecture"), "gpt2");
  EXPECT_EQ(file.whole("w", UINT32_MAX), 4'000'000'000);
  EXPECT_EQ(file.real("r", 0, 1), double{1e-5f});
  EXPECT_TRUE(file.flag("f"));
  EXPECT_EQ(file.texts("t")[2], "\xc4\xa0the");
  EXPECT_EQ(file.whole_list("l"), (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(file.real_list("s"), std::vector<float>{-1.5f});
  ASSERT_EQ(file.tensors().size(), 4u);
  const GgufTensor& matrix = file.tensors()[0];
  EXPECT_EQ(matrix.shape, (std::vector<size_t>{3, 64}));
  EXPECT_EQ(std::memcmp(matrix.bytes.data(), values.data(), matrix.bytes.size()), 0);
  EXPECT_EQ(file.find_tensor("half")->bytes.size(), 2u * 192);
  EXPECT_EQ(file.find_tensor("blocks")->bytes.size(), 6u * 34);
  EXPECT_THROW(keys.add_whole("too large", uint64_t{1} << 32), Error);
}

}  // namespace
}  // namespace quern::formats
