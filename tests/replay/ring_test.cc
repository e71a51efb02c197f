#include "replay/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tests/replay/checked_rows.h"

namespace quern::replay {
namespace {

// A ring whose rows are numbers.
struct Numbers {
  explicit Numbers(uint64_t capacity) : words(capacity), rows(capacity), ring(parts(), capacity) {}

  Ring::Parts parts() { return {&reserved, &published, words.data()}; }

  uint64_t write(uint64_t id, uint64_t value) {
    return ring.write(id, [&](uint64_t slot) { rows[slot].store(value, std::memory_order_relaxed); });
  }
  // 0 when it is not there.
  uint64_t read(uint64_t id) const {
    uint64_t value = 0;
    const bool there = ring.read(id, [&](uint64_t slot) { value = rows[slot].load(std::memory_order_relaxed); });
    return there ? value : 0;
  }

  Counter reserved, published;
  std::vector<std::atomic<uint64_t>> words;
  std::vector<std::atomic<uint64_t>> rows;
  Ring ring;
};

TEST(Ring, WordsEncodeTheirState) {
  constexpr uint64_t kLast = (uint64_t{1} << 47) - 2;
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{12345}, kLast}) {
    for (const uint16_t writer : std::initializer_list<uint16_t>{0, 1, 4095, 65535}) {
      const uint64_t word = busy_word(id, writer);
      EXPECT_TRUE(is_busy(word));
      EXPECT_EQ(order_of(word), id + 1);
      EXPECT_EQ(writer_of(word), writer);
    }
    EXPECT_FALSE(is_busy(complete_word(id)));
    EXPECT_EQ(order_of(complete_word(id)), id + 1);
    EXPECT_EQ(writer_of(complete_word(id)), 0);
  }
}

TEST(Ring, OverwritesTheOldest) {
  Numbers numbers(3);
  EXPECT_EQ(numbers.ring.window().size(), 0u);
  EXPECT_EQ(numbers.read(0), 0u);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(numbers.write(numbers.ring.reserve(1), 100 + i), i);
    EXPECT_EQ(numbers.ring.published(), i + 1);
    const Window window = numbers.ring.window();
    EXPECT_EQ(window.end, i + 1);
    EXPECT_EQ(window.size(), std::min<uint64_t>(i + 1, 3));
    for (uint64_t id = 0; id <= i; ++id) EXPECT_EQ(numbers.read(id), id < window.begin ? 0 : 100 + id);
    EXPECT_EQ(numbers.ring.id_in(i % 3), i);
  }
}

TEST(Ring, ReservedButUnwrittenRowIsAbsent) {
  Numbers numbers(4);
  EXPECT_EQ(numbers.ring.reserve(3), 0u);
  EXPECT_EQ(numbers.write(1, 7), 1u);
  EXPECT_EQ(numbers.read(0), 0u);
  EXPECT_EQ(numbers.read(1), 7u);
  EXPECT_EQ(numbers.ring.id_in(0), kNoRow);
  EXPECT_EQ(numbers.ring.published(), 1u);
}

TEST(Ring, RowThatIsALapLateIsDropped) {
  Numbers numbers(2);
  numbers.ring.reserve(3);
  EXPECT_EQ(numbers.write(2, 22), 2u);
  EXPECT_EQ(numbers.write(0, 20), kNoRow);  // slot 0 has row 2
  EXPECT_EQ(numbers.read(2), 22u);
  EXPECT_EQ(numbers.ring.published(), 2u);
}

// The writer of row 0 is still at work when row 2 wants its slot: row 2 becomes row 3, and no thread waits.
TEST(Ring, BusySlotIsSkipped) {
  Numbers numbers(2);
  numbers.ring.reserve(3);
  uint64_t passed = kNoRow;
  EXPECT_EQ(numbers.ring.write(0, [&](uint64_t) { passed = numbers.write(2, 22); }), 0u);
  EXPECT_EQ(passed, 3u);
  EXPECT_EQ(numbers.read(3), 22u);
  EXPECT_EQ(numbers.read(2), 0u);
  EXPECT_EQ(numbers.ring.window().end, 4u);
}

TEST(Ring, ReaderDetectsAnOverwrittenRow) {
  Numbers numbers(2);
  numbers.write(numbers.ring.reserve(1), 1);
  const bool there = numbers.ring.read(0, [&](uint64_t) { numbers.write(numbers.ring.reserve(2) + 1, 2); });
  EXPECT_FALSE(there);
  EXPECT_EQ(numbers.read(2), 2u);
}

// Four writers and four readers on rings as small as they can be, with both kinds of stores. Every row is one number,
// many times; a row with two numbers would be torn.
void never_torn(uint64_t capacity, size_t row_bytes, Through way) {
  constexpr size_t kThreads = 4;
  const double seconds = test::stress_seconds() / 8;
  Numbers numbers(capacity);
  std::vector<std::byte> rows(capacity * row_bytes);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> added{0}, read{0}, torn{0};
  const auto add = [&](size_t thread) {
    std::vector<std::byte> row(row_bytes);
    for (size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      std::fill(row.begin(), row.end(), static_cast<std::byte>(i * kThreads + thread));
      numbers.ring.write(numbers.ring.reserve(1), [&](uint64_t slot) {
        copy_to_row(rows.data() + slot * row_bytes, row.data(), row_bytes, way);
      });
      added.fetch_add(1, std::memory_order_relaxed);
    }
  };
  const auto look = [&] {
    std::vector<std::byte> row(row_bytes);
    while (!stop.load(std::memory_order_relaxed)) {
      for (uint64_t slot_number = 0; slot_number < capacity; ++slot_number) {
        const uint64_t id = numbers.ring.id_in(slot_number);
        if (id == kNoRow) continue;
        const bool there = numbers.ring.read(
            id, [&](uint64_t slot) { copy_from_row(row.data(), rows.data() + slot * row_bytes, row_bytes); });
        if (!there) continue;
        read.fetch_add(1, std::memory_order_relaxed);
        if (std::count(row.begin(), row.end(), row[0]) != static_cast<ptrdiff_t>(row_bytes)) torn.fetch_add(1);
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) threads.emplace_back(add, t);
    for (size_t t = 0; t < kThreads; ++t) threads.emplace_back(look);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    // On a busy machine a reader may need luck to meet a row that stays.
    for (int i = 0; i < 10000 && read.load() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop = true;
  }
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(numbers.ring.published(), added.load());
  EXPECT_GT(added.load(), 100u);
  EXPECT_GT(read.load(), 0u);
}

TEST(Ring, NeverTornWithOneSlot) { never_torn(1, 1001, Through::kCache); }
TEST(Ring, NeverTornWithOneSlotBypassingTheCaches) { never_torn(1, 5003, Through::kMemory); }
TEST(Ring, NeverTornWithFiveSlots) { never_torn(5, 333, Through::kCache); }
TEST(Ring, NeverTornWithFiveSlotsBypassingTheCaches) { never_torn(5, 40000, Through::kMemory); }

}  // namespace
}  // namespace quern::replay
