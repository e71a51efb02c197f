#include "replay/buffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "replay/layout.h"
#include "tests/replay/checked_rows.h"
#include "tests/support/message.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::CheckedRows;
using test::message_of;

// All kinds of memory do the same.
class BufferTest : public testing::TestWithParam<Storage::Kind> {
 protected:
  BufferTest() { ReplayBuffer::remove(Storage::in_shared(name_)); }
  ~BufferTest() override { ReplayBuffer::remove(Storage::in_shared(name_)); }

  Storage storage() const {
    if (GetParam() == Storage::Kind::kShared) return Storage::in_shared(name_);
    return GetParam() == Storage::Kind::kFile ? Storage::in_file(folder_ / "buffer") : Storage();
  }
  ReplayBuffer make(Schema schema, uint64_t capacity) const {
    return ReplayBuffer::create(std::move(schema), {.capacity = capacity}, storage());
  }

  std::string name_ = "buffer_test-" + std::to_string(getpid());
  test::TemporaryFolder folder_;
};
std::string place_name(const testing::TestParamInfo<Storage::Kind>& info) {
  if (info.param == Storage::Kind::kPrivate) return "Private";
  return info.param == Storage::Kind::kShared ? "Shared" : "File";
}
INSTANTIATE_TEST_SUITE_P(Storages, BufferTest,
                         testing::Values(Storage::Kind::kPrivate, Storage::Kind::kShared, Storage::Kind::kFile),
                         place_name);

TEST_P(BufferTest, EveryDTypeAndOddSizes) {
  for (const size_t elements : {1, 3, 5, 7, 64, 1001}) {
    std::vector<Column> columns;
    for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
      const auto dtype = static_cast<DType>(i);
      columns.push_back({.name = std::string(name_of(dtype)), .dtype = dtype, .shape = {elements}});
    }
    columns.push_back({.name = "check", .dtype = DType::kU32});
    const Schema schema(columns);
    {
      ReplayBuffer buffer = make(schema, 5);
      CheckedRows in(schema, 4), out(schema);
      in.fill(elements);
      EXPECT_EQ(buffer.add(in.inputs(), 4), 3u);
      for (size_t row = 0; row < 4; ++row) {
        ASSERT_TRUE(buffer.read(row, out.outputs()));
        ASSERT_TRUE(out.good());
        for (size_t c = 0; c < columns.size(); ++c) {
          const size_t bytes = columns[c].value_bytes();
          ASSERT_EQ(std::memcmp(&in.arrays()[c][row * bytes], out.arrays()[c].data(), bytes), 0) << columns[c].name;
        }
      }
    }
    if (GetParam() != Storage::Kind::kPrivate) {
      EXPECT_TRUE(ReplayBuffer::remove(storage()));
    }
  }
}

// The sample of the benchmarks, 49,924 bytes, in a ring that is large enough for stores past the caches.
TEST_P(BufferTest, LargeRows) {
  const Schema schema({{.name = "planes", .dtype = DType::kF32, .shape = {7808}},
                       {.name = "policy", .dtype = DType::kF32, .shape = {4672}},
                       {.name = "check", .dtype = DType::kU32}});
  ReplayBuffer buffer = make(schema, 701);
  CheckedRows in(schema, 100), out(schema);
  in.fill(1);
  for (int batch = 0; batch < 10; ++batch) buffer.add(in.inputs(), 100);
  EXPECT_EQ(buffer.size(), 701u);
  for (uint64_t id = 299; id < 1000; ++id) {
    ASSERT_TRUE(buffer.read(id, out.outputs()));
    ASSERT_TRUE(out.good());
    ASSERT_EQ(out.get<uint32_t>(2), in.get<uint32_t>(2, id % 100));
  }
}

TEST_P(BufferTest, SizeIsLimitedByTheCapacity) {
  const Schema schema = test::checked_schema();
  ReplayBuffer buffer = make(schema, 10);
  CheckedRows in(schema, 4), out(schema);
  in.fill(1);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_FALSE(buffer.read(0, out.outputs()));
  for (uint64_t added = 4; added <= 40; added += 4) {
    EXPECT_EQ(buffer.add(in.inputs(), 4), added - 1);
    EXPECT_EQ(buffer.total_added(), added);
    EXPECT_EQ(buffer.size(), std::min<uint64_t>(added, 10));
  }
  EXPECT_EQ(buffer.add(in.inputs(), 0), kNoRow);
  EXPECT_EQ(buffer.total_added(), 40u);
  EXPECT_FALSE(buffer.read(29, out.outputs()));
  EXPECT_TRUE(buffer.read(30, out.outputs()));
  EXPECT_FALSE(buffer.read(40, out.outputs()));
}

TEST_P(BufferTest, BatchLargerThanTheRingLeavesItsEnd) {
  const Schema schema = test::checked_schema();
  ReplayBuffer buffer = make(schema, 3);
  CheckedRows in(schema, 20), out(schema);
  in.fill(1);
  EXPECT_EQ(buffer.add(in.inputs(), 20), 19u);
  for (uint64_t id = 17; id < 20; ++id) {
    ASSERT_TRUE(buffer.read(id, out.outputs()));
    EXPECT_EQ(out.get<uint32_t>(4), in.get<uint32_t>(4, id));
  }
}

TEST_P(BufferTest, OneRow) {
  const Schema schema({{.name = "a", .dtype = DType::kU8}});
  ReplayBuffer buffer = make(schema, 1);
  for (int i = 0; i < 5; ++i) {
    const auto value = static_cast<std::byte>(i);
    const std::byte* const in[] = {&value};
    EXPECT_EQ(buffer.add(in, 1), static_cast<uint64_t>(i));
    std::byte found{99};
    std::byte* const out[] = {&found};
    EXPECT_TRUE(buffer.read(static_cast<uint64_t>(i), out));
    EXPECT_EQ(found, value);
  }
}

TEST_P(BufferTest, ReadCanSkipColumns) {
  const Schema schema = test::checked_schema();
  ReplayBuffer buffer = make(schema, 3);
  CheckedRows in(schema), out(schema);
  in.fill(1);
  buffer.add(in.inputs(), 1);
  std::vector<std::byte*> wanted(5);
  wanted[3] = out.outputs()[3];
  EXPECT_TRUE(buffer.read(0, wanted));
  EXPECT_EQ(out.get<int64_t>(3), in.get<int64_t>(3));
  EXPECT_EQ(out.get<uint32_t>(4), 0u);
}

TEST_P(BufferTest, EncodedColumns) {
  const Schema schema(
      {{.name = "bits", .dtype = DType::kF32, .shape = {9, 11}, .encoding = Encoding::kBits},
       {.name = "sparse", .dtype = DType::kF32, .shape = {500}, .encoding = Encoding::kSparse, .max_nonzero = 3},
       {.name = "many", .dtype = DType::kU8, .shape = {200000}, .encoding = Encoding::kBits}});
  ReplayBuffer buffer = make(schema, 4);
  std::vector<float> bits(2 * 99), sparse(2 * 500), bits_out(99, 9), sparse_out(500, 9);
  std::vector<uint8_t> many(2 * 200000), many_out(200000, 9);
  for (size_t i = 0; i < bits.size(); i += 3) bits[i] = 1;
  sparse[7] = 0.5f;
  sparse[499] = -2;
  sparse[500] = 3;
  many[200001] = 1;
  const auto bytes = [](auto& vector) { return reinterpret_cast<std::byte*>(vector.data()); };
  const std::byte* const in[] = {bytes(bits), bytes(sparse), bytes(many)};
  std::byte* const out[] = {bytes(bits_out), bytes(sparse_out), bytes(many_out)};
  buffer.add(in, 2);
  ASSERT_TRUE(buffer.read(1, out));
  EXPECT_TRUE(std::equal(bits_out.begin(), bits_out.end(), bits.begin() + 99));
  EXPECT_TRUE(std::equal(sparse_out.begin(), sparse_out.end(), sparse.begin() + 500));
  EXPECT_TRUE(std::equal(many_out.begin(), many_out.end(), many.begin() + 200000));

  bits[99 + 4] = 2;
  EXPECT_EQ(message_of([&] { buffer.add(in, 2); }),
            "[replay] add: column 'bits': row 1: expected zeros and ones, found another value at element 4");
  bits[99 + 4] = 0;
  sparse[1] = sparse[2] = 1;
  EXPECT_EQ(
      message_of([&] { buffer.add(in, 2); }),
      "[replay] add: column 'sparse': row 0: expected at most 3 values other than zero, found one more at element "
      "499");
  EXPECT_EQ(buffer.total_added(), 2u);
  EXPECT_EQ(buffer.ring().window().end, 2u);  // nothing was even reserved
}

TEST_P(BufferTest, BadInputWritesNothing) {
  const Schema schema({{.name = "a", .dtype = DType::kU8}, {.name = "b", .dtype = DType::kU8}});
  ReplayBuffer buffer = make(schema, 4);
  const std::byte value{1};
  const std::byte* const one[] = {&value};
  const std::byte* const missing[] = {&value, nullptr};
  const std::byte* const good[] = {&value, &value};
  EXPECT_EQ(message_of([&] { buffer.add(one, 1); }), "[replay] add: expected 2 columns, found 1");
  EXPECT_EQ(message_of([&] { buffer.add(missing, 1); }), "[replay] add: column 'b': expected 1 values, found none");
  EXPECT_EQ(message_of([&] { buffer.add(good, 1, std::vector<float>{1}); }),
            "[replay] add: expected no priorities, since the buffer is not prioritised; found some");
  EXPECT_EQ(message_of([&] { buffer.update_priorities({}, {}); }),
            "[replay] update_priorities: expected a prioritised buffer, found one that is not");
  EXPECT_EQ(message_of([&] { static_cast<void>(buffer.read(0, {})); }), "[replay] read: expected 2 columns, found 0");
  EXPECT_EQ(buffer.ring().window().end, 0u);
  EXPECT_EQ(buffer.tree(), nullptr);
}

TEST_P(BufferTest, Priorities) {
  const Schema schema({{.name = "a", .dtype = DType::kU8}});
  const BufferOptions options{.capacity = 4, .prioritised = true, .alpha = 0.5};
  ReplayBuffer buffer = ReplayBuffer::create(schema, options, storage());
  const std::byte values[8] = {};
  const std::byte* const in[] = {values};
  const auto weight = [](double priority) { return weight_of(priority, 0.5, 4); };
  buffer.add(in, 1);  // as if it had priority 1
  EXPECT_EQ(buffer.tree()->get(0), weight(1));
  buffer.add(in, 2, std::vector<float>{9, 0.25f});
  EXPECT_EQ(buffer.tree()->get(1), weight(9));
  EXPECT_EQ(buffer.tree()->get(2), weight(0.25));
  buffer.add(in, 1);  // the highest so far
  EXPECT_EQ(buffer.tree()->get(3), weight(9));
  buffer.add(in, 1, std::vector<float>{0});  // row 4 in the place of row 0
  EXPECT_EQ(buffer.tree()->total(), weight(9) * 2 + weight(0.25));

  const std::vector<uint64_t> ids = {0, 1, 4, 77};
  EXPECT_EQ(buffer.update_priorities(ids, std::vector<float>{5, 16, 1, 1}), 2u);
  EXPECT_EQ(buffer.tree()->get(0), weight(1));
  EXPECT_EQ(buffer.tree()->get(1), weight(16));
  buffer.add(in, 1);
  EXPECT_EQ(buffer.tree()->get(1), weight(16));

  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(message_of([&] { buffer.add(in, 2, std::vector<float>{1, nan}); }), "no error");
  EXPECT_NE(message_of([&] { buffer.add(in, 2, std::vector<float>{1, -1}); }), "no error");
  EXPECT_EQ(message_of([&] { buffer.add(in, 2, std::vector<float>{1}); }),
            "[replay] add: expected 2 priorities, one per row, found 1");
  EXPECT_NE(message_of([&] { buffer.update_priorities(ids, std::vector<float>{1, 1, 1, nan}); }), "no error");
  EXPECT_EQ(buffer.total_added(), 6u);
  EXPECT_EQ(buffer.tree()->get(1), weight(16));
}

TEST_P(BufferTest, SecondHandleSeesTheSameRows) {
  if (GetParam() == Storage::Kind::kPrivate) return;
  const Schema schema = test::checked_schema();
  CheckedRows in(schema, 3), out(schema);
  in.fill(1);
  const BufferOptions options{.capacity = 8, .prioritised = true, .limit = {.samples_per_insert = 2, .slack = 9}};
  auto first = std::make_unique<ReplayBuffer>(ReplayBuffer::create(schema, options, storage()));
  ReplayBuffer second = ReplayBuffer::attach(storage());
  EXPECT_EQ(second.schema(), schema);
  EXPECT_EQ(second.options().limit, options.limit);
  first->add(in.inputs(), 3);
  EXPECT_EQ(second.size(), 3u);
  EXPECT_TRUE(second.read(2, out.outputs()));
  EXPECT_TRUE(out.good());
  second.add(in.inputs(), 1);
  EXPECT_TRUE(first->read(3, out.outputs()));
  EXPECT_EQ(first->tree()->total(), second.tree()->total());
  first.reset();
  EXPECT_TRUE(ReplayBuffer::remove(storage()));
  EXPECT_FALSE(ReplayBuffer::remove(storage()));
  EXPECT_EQ(second.add(in.inputs(), 3), 6u);  // lives on without its name
}

TEST_P(BufferTest, CapacityOfZeroOrBeyondMemoryIsAnError) {
  const Schema schema = test::checked_schema();
  EXPECT_NE(message_of([&] { make(schema, 0); }).find("capacity: expected 1 to 1099511627776 rows, found 0"),
            std::string::npos);
  const std::string message = message_of([&] { make(schema, uint64_t{1} << 38); });
  EXPECT_NE(message.find("cannot get 7"), std::string::npos) << message;  // 70 TiB
  if (GetParam() != Storage::Kind::kPrivate) {
    EXPECT_FALSE(ReplayBuffer::remove(storage()));
  }
}

TEST_P(BufferTest, ExistingNameIsAnError) {
  if (GetParam() == Storage::Kind::kPrivate) return;
  const ReplayBuffer buffer = make(test::checked_schema(), 4);
  EXPECT_EQ(message_of([&] { make(test::checked_schema(), 4); }),
            storage().text() + ": expected a new name, found one that exists; attach to it or remove it");
  EXPECT_EQ(ReplayBuffer::attach(storage()).capacity(), 4u);
}

TEST(Buffer, InvalidStorageIsAnError) {
  const Schema schema = test::checked_schema();
  const auto message = [&](const Storage& storage) {
    return message_of([&] { ReplayBuffer::create(schema, {.capacity = 1}, storage); });
  };
  EXPECT_EQ(message(Storage::in_shared("a/b")),
            "[replay] shared memory 'a/b': expected a name of at most 200 bytes without '/'");
  EXPECT_NE(message(Storage::in_shared("")).find("expected a name"), std::string::npos);
  EXPECT_NE(message(Storage::in_shared(std::string(201, 'a'))).find("at most 200"), std::string::npos);
  EXPECT_NE(message(Storage::in_file("")).find("expected a name"), std::string::npos);
  EXPECT_EQ(message(Storage::in_file("/nowhere/x")),
            "[replay] file '/nowhere/x': cannot create a file in /nowhere: No such file or directory");
  EXPECT_EQ(message_of([] { ReplayBuffer::attach(Storage::in_shared("quern-not-there")); }),
            "[replay] shared memory 'quern-not-there': cannot open: No such file or directory");
  EXPECT_NE(message_of([] { ReplayBuffer::attach(Storage::in_file("/tmp")); }), "no error");
  EXPECT_NE(message_of([] { ReplayBuffer::attach({}); }).find("found private memory"), std::string::npos);
}

// A crash of the machine may keep an older page of counters than of words.
TEST(BufferFile, CountersBehindTheRowsAreCorrected) {
  const test::TemporaryFolder folder;
  const Storage storage = Storage::in_file(folder / "buffer");
  const Schema schema({{.name = "x", .dtype = DType::kI32}});
  const BufferOptions options{.capacity = 8};
  const auto add = [](ReplayBuffer& buffer, int32_t x) {
    const auto* const column = reinterpret_cast<const std::byte*>(&x);
    return buffer.add({&column, 1}, 1);
  };
  {
    ReplayBuffer buffer = ReplayBuffer::create(schema, options, storage);
    for (int32_t x = 0; x < 20; ++x) add(buffer, x);
  }
  {
    std::fstream file(folder / "buffer", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(Layout(schema, options).counters));
    file.write(std::string(2 * sizeof(Counter), '\0').data(), 2 * sizeof(Counter));
  }
  ReplayBuffer buffer = ReplayBuffer::attach(storage);
  EXPECT_EQ(buffer.size(), 8u);
  EXPECT_EQ(add(buffer, 77), 20u);
  int32_t found = 0;
  std::byte* const to = reinterpret_cast<std::byte*>(&found);
  EXPECT_TRUE(buffer.read(20, {&to, 1}));
  EXPECT_EQ(found, 77);
}

}  // namespace
}  // namespace quern::replay
