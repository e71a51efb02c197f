#include "core/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"

namespace quern {
namespace {

constexpr size_t kHugeFloats = kHugePage / sizeof(float);

bool aligned(const void* pointer, size_t alignment) { return reinterpret_cast<uintptr_t>(pointer) % alignment == 0; }

std::string message_of(size_t count) {
  try {
    AlignedBuffer<double> buffer(count);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(AlignedBuffer, IsAlignedAndWritableAtEverySize) {
  for (const size_t size : {size_t{1}, size_t{15}, size_t{17}, size_t{1000}, kHugeFloats - 1, kHugeFloats,
                            kHugeFloats + 1, 3 * kHugeFloats + 12345}) {
    AlignedBuffer<float> buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.size_bytes(), size * sizeof(float));
    EXPECT_TRUE(aligned(buffer.data(), size >= kHugeFloats ? kHugePage : kAlignment)) << size;
    std::fill(buffer.span().begin(), buffer.span().end(), 1.5f);  // a fault, or asan, would tell
    EXPECT_EQ(buffer[size - 1], 1.5f);
  }
}

TEST(AlignedBuffer, IsZeroOnRequestAlsoInRecycledMemory) {
  for (const size_t size : {size_t{1}, size_t{777}, kHugeFloats + 3}) {
    for (int round = 0; round < 3; ++round) {
      AlignedBuffer<float> buffer(size, Fill::kZero);
      EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(), [](float x) { return x == 0.0f; })) << size;
      std::fill(buffer.span().begin(), buffer.span().end(), 2.0f);
    }
  }
}

TEST(AlignedBuffer, SizeZeroIsEmpty) {
  const AlignedBuffer<float> buffer(0, Fill::kZero);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_TRUE(AlignedBuffer<float>().span().empty());
}

TEST(AlignedBuffer, MoveLeavesTheSourceEmpty) {
  AlignedBuffer<int> first(10, Fill::kZero);
  first[9] = 42;
  const int* data = first.data();
  AlignedBuffer<int> second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second[9], 42);
  EXPECT_TRUE(first.empty());  // NOLINT: the state after a move is part of the contract
  AlignedBuffer<int> third(5);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 10u);
  EXPECT_TRUE(second.empty());  // NOLINT
  static_assert(!std::is_copy_constructible_v<AlignedBuffer<int>> && !std::is_copy_assignable_v<AlignedBuffer<int>>);
}

TEST(AlignedBuffer, OverflowingSizeIsAnError) {
  const size_t max = std::numeric_limits<size_t>::max();
  EXPECT_NE(message_of(max).find("[memory] expected at most"), std::string::npos) << message_of(max);
  EXPECT_NE(message_of(max / 8 + 2).find(std::to_string(max / 8 + 2) + " elements of 8 bytes"), std::string::npos);
}

TEST(AlignedBuffer, OutOfMemoryErrorNamesTheSize) {
  const size_t count = size_t{1} << 50;  // 8 PiB: beyond the address space of every current CPU
  EXPECT_EQ(message_of(count), "[memory] cannot allocate 9007199254740992 bytes (8589934592.0 MiB)");
  const size_t nearly_all = std::numeric_limits<ptrdiff_t>::max() / sizeof(double);
  EXPECT_NE(message_of(nearly_all).find("[memory] cannot allocate"), std::string::npos) << message_of(nearly_all);
}

// Any part of a small or a mapped buffer: zero afterwards, the rest untouched, and writable again.
TEST(AlignedBuffer, DiscardedPartsAreZero) {
  discard(std::span<float>());
  for (const size_t size : {size_t{10}, size_t{5000}, 2 * kHugePage / sizeof(float) + 3}) {
    for (const auto& [begin, end] : {std::pair{size_t{0}, size}, {size / 3, size - size / 5}, {size / 2, size / 2}}) {
      AlignedBuffer<float> buffer(size);
      for (float& value : buffer.span()) value = 1.0f;
      discard(buffer.span().subspan(begin, end - begin));
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(buffer[i], i >= begin && i < end ? 0.0f : 1.0f) << i;
      for (float& value : buffer.span()) value = 2.0f;
      ASSERT_EQ(buffer[size / 2], 2.0f);
    }
  }
}

}  // namespace
}  // namespace quern
