#include "replay/encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/support.h"

namespace quern::replay {
namespace {

using Bytes = std::vector<std::byte>;

constexpr DType kAll[] = {DType::kBool, DType::kI8,  DType::kU8,  DType::kI16, DType::kU16, DType::kI32,
                          DType::kU32,  DType::kI64, DType::kU64, DType::kF16, DType::kF32, DType::kF64};
constexpr size_t kSizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 100, 127, 128, 129, 7808};

uint64_t word_at(const Bytes& bytes, size_t size, size_t i) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + i * size, size);
  return word;
}

void set_word(Bytes& bytes, size_t size, size_t i, uint64_t word) { std::memcpy(bytes.data() + i * size, &word, size); }

Column bits_column(DType dtype, size_t n) { return {"x", dtype, {n}, Encoding::kBits, 0}; }
Column sparse_column(DType dtype, size_t n, size_t max) { return {"x", dtype, {n}, Encoding::kSparse, max}; }

// Copies that start `offset` bytes off and end exactly where their memory does.
struct Exact {
  explicit Exact(const Bytes& bytes, size_t offset) : memory(offset) {
    memory.insert(memory.end(), bytes.begin(), bytes.end());
    memory.shrink_to_fit();
    start = memory.data() + offset;
  }
  Bytes copy() const { return {static_cast<const std::byte*>(start), memory.data() + memory.size()}; }
  std::vector<std::byte> memory;
  std::byte* start = nullptr;
};

Bytes encoded(const Column& column, const Bytes& values, size_t offset) {
  const Exact in(values, offset);
  Exact out(Bytes(column.stored_bytes(), std::byte{0xEE}), offset);
  encode(column, in.start, out.start);
  return out.copy();
}

Bytes decoded(const Column& column, const Bytes& stored, size_t offset) {
  const Exact in(stored, offset);
  Exact out(Bytes(column.value_bytes(), std::byte{0xEE}), offset);
  decode(column, in.start, out.start);
  return out.copy();
}

// The layouts that the header promises, a bit and a number at a time.
Bytes naive_bits(const Column& column, const Bytes& values) {
  Bytes stored((column.elements() + 7) / 8);
  for (size_t i = 0; i < column.elements(); ++i) {
    if (word_at(values, size_of(column.dtype), i) != 0) stored[i / 8] |= std::byte{1} << (i % 8);
  }
  return stored;
}

Bytes naive_sparse(const Column& column, const Bytes& values) {
  const size_t size = size_of(column.dtype);
  const size_t index_size = column.elements() <= 65536 ? 2 : 4;
  const size_t kept = (4 + column.max_nonzero * index_size + size - 1) / size * size;
  Bytes stored(kept + column.max_nonzero * size);
  uint32_t count = 0;
  for (size_t i = 0; i < column.elements(); ++i) {
    const uint64_t word = word_at(values, size, i);
    if (word == 0) continue;
    std::memcpy(stored.data() + 4 + count * index_size, &i, index_size);
    std::memcpy(stored.data() + kept + count * size, &word, size);
    ++count;
  }
  std::memcpy(stored.data(), &count, 4);
  return stored;
}

Bytes zeros_and_ones(const Column& column, std::mt19937& random) {
  Bytes values(column.value_bytes());
  for (size_t i = 0; i < column.elements(); ++i) {
    set_word(values, size_of(column.dtype), i, random() % 3 == 0 ? one_of(column.dtype) : 0);
  }
  return values;
}

// `count` different elements get words of any bits but zero, among them -0.0 and NaN with a payload.
Bytes few_words(const Column& column, size_t count, std::mt19937& random) {
  const size_t size = size_of(column.dtype);
  const uint64_t all = ~uint64_t{0} >> (64 - 8 * size);
  const uint64_t special[] = {uint64_t{1} << (8 * size - 1), all, 1, one_of(column.dtype)};
  Bytes values(column.value_bytes());
  while (count > 0) {
    const size_t i = random() % column.elements();
    if (word_at(values, size, i) != 0) continue;
    const uint64_t any = (uint64_t{random()} << 32 | random()) & all;
    set_word(values, size, i, random() % 2 == 0 || any == 0 ? special[random() % 4] : any);
    --count;
  }
  return values;
}

TEST(Encoding, BitsMatchTheTwin) {
  test::for_each_target([](const kernels::Target&) {
    std::mt19937 random(1);
    for (const DType dtype : kAll) {
      for (const size_t n : kSizes) {
        const Column column = bits_column(dtype, n);
        const Bytes values = zeros_and_ones(column, random);
        const Bytes stored = naive_bits(column, values);
        ASSERT_EQ(stored.size(), column.stored_bytes());
        size_t bad = 0;
        ASSERT_TRUE(can_encode(column, values.data(), bad));
        ASSERT_EQ(encoded(column, values, n % 5), stored) << name_of(dtype) << " " << n;
        ASSERT_EQ(decoded(column, stored, n % 3), values) << name_of(dtype) << " " << n;
      }
    }
  });
}

TEST(Encoding, SparseRowsMatchTheTwin) {
  test::for_each_target([](const kernels::Target&) {
    std::mt19937 random(2);
    for (const DType dtype : kAll) {
      for (const size_t n : {size_t{1}, size_t{2}, size_t{9}, size_t{64}, size_t{129}, size_t{4672}, size_t{70'000}}) {
        for (const size_t max : {size_t{1}, std::min<size_t>(n, 37), std::min<size_t>(n, 300)}) {
          for (const size_t count : {size_t{0}, max / 2, max}) {
            const Column column = sparse_column(dtype, n, max);
            const Bytes values = few_words(column, count, random);
            const Bytes stored = naive_sparse(column, values);
            ASSERT_EQ(stored.size(), column.stored_bytes()) << name_of(dtype) << " " << n << " " << max;
            size_t bad = 0;
            ASSERT_TRUE(can_encode(column, values.data(), bad));
            ASSERT_EQ(encoded(column, values, n % 5), stored) << name_of(dtype) << " " << n << " " << max;
            ASSERT_EQ(decoded(column, stored, n % 3), values) << name_of(dtype) << " " << n << " " << max;
          }
        }
      }
    }
  });
}

// Also -0.0, whose bits are not those of 0, and a bool that is neither.
TEST(Encoding, BitsRejectOtherValues) {
  test::for_each_target([](const kernels::Target&) {
    std::mt19937 random(3);
    for (const DType dtype : kAll) {
      const size_t size = size_of(dtype);
      for (const size_t n : kSizes) {
        const Column column = bits_column(dtype, n);
        const uint64_t others[] = {uint64_t{1} << (8 * size - 1), ~uint64_t{0} >> (64 - 8 * size), 2};
        for (const uint64_t other : others) {
          Bytes values = zeros_and_ones(column, random);
          const size_t at = random() % n;
          set_word(values, size, at, other);
          set_word(values, size, n - 1, other);
          size_t bad = n;
          const Exact exact(values, 1);
          ASSERT_FALSE(can_encode(column, exact.start, bad));
          ASSERT_EQ(bad, at) << name_of(dtype) << " " << n;
        }
      }
    }
  });
}

TEST(Encoding, SparseRejectsTooManyValues) {
  test::for_each_target([](const kernels::Target&) {
    std::mt19937 random(4);
    for (const DType dtype : kAll) {
      for (const size_t n : {size_t{2}, size_t{64}, size_t{65}, size_t{1000}}) {
        const size_t max = 1 + random() % (n - 1);
        const Column column = sparse_column(dtype, n, max);
        const Bytes values = few_words(column, max + 1 + random() % (n - max), random);
        size_t expected = 0;
        for (size_t count = 0;; ++expected) {
          if (word_at(values, size_of(dtype), expected) != 0 && ++count > max) break;
        }
        size_t bad = n;
        ASSERT_FALSE(can_encode(column, Exact(values, 1).start, bad));
        ASSERT_EQ(bad, expected) << name_of(dtype) << " " << n << " " << max;
      }
    }
  });
}

// A torn row is any bytes at all. The address sanitizer sees what leaves the arrays; 0xEE would stay where a byte is
// not written, and comes out of these values only by chance.
TEST(Encoding, AnyBytesDecode) {
  test::for_each_target([](const kernels::Target&) {
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
      const DType dtype = kAll[random() % 12];
      const size_t n = 1 + random() % 200;
      const Column column = random() % 2 == 0 ? bits_column(dtype, n) : sparse_column(dtype, n, 1 + random() % n);
      Bytes stored(column.stored_bytes());
      for (std::byte& byte : stored) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 1);
      const Bytes once = decoded(column, stored, 0);
      Exact out(Bytes(column.value_bytes(), std::byte{0x11}), 0);
      decode(column, Exact(stored, 0).start, out.start);
      ASSERT_EQ(out.copy(), once);
    }
  });
}

// The array may have been changed by another thread between the look at it and the encoding.
TEST(Encoding, ExcessValuesStayWithinTheRow) {
  for (const size_t max : {1, 5, 70}) {
    const Column column = sparse_column(DType::kF32, 200, max);
    const Bytes ones(column.value_bytes(), std::byte{1});
    std::vector<std::byte> stored(column.stored_bytes() + 64, std::byte{0xEE});
    encode(column, ones.data(), stored.data());
    EXPECT_TRUE(std::all_of(stored.end() - 64, stored.end(), [](std::byte b) { return b == std::byte{0xEE}; }));
    const Bytes values = decoded(column, {stored.begin(), stored.end() - 64}, 0);
    EXPECT_EQ(std::count(values.begin(), values.end(), std::byte{1}), static_cast<std::ptrdiff_t>(max * 4));
  }
}

TEST(Encoding, OneIsRecognisedInEveryType) {
  EXPECT_EQ(one_of(DType::kF32), std::bit_cast<uint32_t>(1.0f));
  EXPECT_EQ(one_of(DType::kF64), std::bit_cast<uint64_t>(1.0));
  EXPECT_EQ(one_of(DType::kF16), 0x3C00u);
  EXPECT_EQ(one_of(DType::kBool), 1u);
}

}  // namespace
}  // namespace quern::replay
