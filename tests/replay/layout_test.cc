#include "replay/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/crc32c.h"
#include "core/error.h"
#include "replay/buffer.h"
#include "tests/support/message.h"
#include "tests/support/mutation.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::message_of;

Schema example() {
  return Schema({{.name = "a", .dtype = DType::kF32, .shape = {3}},
                 {.name = "b", .dtype = DType::kU8, .shape = {40}, .encoding = Encoding::kBits}});
}

BufferOptions options() {
  return {.capacity = 10,
          .prioritised = true,
          .alpha = 0.7,
          .limit = {.samples_per_insert = 4, .minimum = 5, .slack = 100},
          .prefault = false};
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string whole_file() {
  std::string bytes = make_header(example(), options());
  bytes.resize(Layout(example(), options()).total, '\0');
  return bytes;
}

// As an attacker, or another version, would do it: with a checksum that fits.
void fix_checksum(std::string& bytes) {
  uint64_t schema_bytes = 0;
  std::memcpy(&schema_bytes, &bytes[24], sizeof(schema_bytes));
  const uint64_t end = kHeaderBytes + std::min<uint64_t>(schema_bytes, bytes.size() - kHeaderBytes);
  const uint32_t sum = crc32c(std::string_view(bytes).substr(16, end - 16));
  std::memcpy(&bytes[12], &sum, sizeof(sum));
}

template <typename T>
std::string changed(size_t offset, T value) {
  std::string bytes = whole_file();
  std::memcpy(&bytes[offset], &value, sizeof(value));
  fix_checksum(bytes);
  return bytes;
}

class LayoutTest : public testing::Test {
 protected:
  std::string attach_message(const std::string& bytes) const {
    write(path_, bytes);
    std::string message = message_of([&] { ReplayBuffer::attach(Storage::in_file(path_)); });
    const std::string storage = Storage::in_file(path_).text();
    if (message.starts_with(storage)) message.erase(0, storage.size());
    return message;
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "buffer";
};

TEST_F(LayoutTest, PartsFollowOneAnotherOnLines) {
  const Layout layout(example(), options());
  EXPECT_EQ(layout.counters % 64, 0u);
  EXPECT_GE(layout.counters, kHeaderBytes + example().text().size());
  EXPECT_EQ(layout.words, layout.counters + kCounters * 64);
  EXPECT_EQ(layout.tree, layout.words + 128);  // 10 words
  ASSERT_EQ(layout.columns.size(), 2u);
  EXPECT_GT(layout.columns[0], layout.tree);
  EXPECT_EQ(layout.columns[1], layout.columns[0] + 128);  // 10 x 12 bytes
  EXPECT_EQ(layout.total, layout.columns[1] + 64);        // 10 x 5 bytes
  BufferOptions plain = options();
  plain.prioritised = false;
  EXPECT_EQ(Layout(example(), plain).tree, 0u);
}

TEST_F(LayoutTest, HeaderDescribesTheBuffer) {
  write(path_, whole_file());
  const Memory memory = Memory::open(Storage::in_file(path_), 0);
  const Description found = read_header(memory);
  EXPECT_EQ(found.schema, example());
  EXPECT_EQ(found.options.capacity, 10u);
  EXPECT_TRUE(found.options.prioritised);
  EXPECT_EQ(found.options.alpha, 0.7);
  EXPECT_EQ(found.options.limit, options().limit);
  EXPECT_FALSE(found.options.prefault);
}

TEST_F(LayoutTest, OtherVersionIsAnError) {
  EXPECT_EQ(attach_message(changed(8, uint32_t{7})),
            ": expected layout version 1 or 2, found 7; create it again with this version of Quern, or remove it");
}

TEST_F(LayoutTest, OtherFileIsAnError) {
  const std::string expected = ": expected a replay buffer, found something else";
  EXPECT_EQ(attach_message(""), expected);
  EXPECT_EQ(attach_message("hello"), expected);
  EXPECT_EQ(attach_message(std::string(100000, 'x')), expected);
  EXPECT_EQ(attach_message(whole_file().substr(0, 70)), expected);
}

TEST_F(LayoutTest, DamagedFieldsAreNamed) {
  const std::string whole = whole_file();
  const size_t total = whole.size();
  EXPECT_EQ(attach_message(whole.substr(0, total - 1)),
            fmt::format(": damaged: bytes: expected {}, found {}", total, total - 1));
  EXPECT_EQ(attach_message(whole.substr(0, 4096 + 10)),
            fmt::format(": damaged: bytes: expected {}, found {}", total, 4096 + 10));
  EXPECT_NE(attach_message(changed(24, ~uint64_t{0})).find("bytes of schema, at most"), std::string::npos);
  EXPECT_NE(attach_message(changed(32, uint64_t{0})).find("capacity: expected 1 to"), std::string::npos);
  EXPECT_NE(attach_message(changed(32, uint64_t{11})).find("damaged: bytes"), std::string::npos);
  EXPECT_NE(attach_message(changed(32, uint64_t{1} << 39)).find("damaged"), std::string::npos);
  EXPECT_NE(attach_message(changed(40, -1.0)).find("alpha"), std::string::npos);
  EXPECT_NE(attach_message(changed(72, uint32_t{2})).find("prioritised"), std::string::npos);
  EXPECT_NE(attach_message(changed(4096, 'x')).find("a JSON object"), std::string::npos);
  std::string flipped = whole;
  flipped[100] ^= 1;
  EXPECT_NE(attach_message(flipped).find("checksum of the header"), std::string::npos);
}

TEST_F(LayoutTest, SizeBeyondAFileIsAnError) {
  BufferOptions huge = options();
  huge.capacity = kMaxRows;
  const Schema wide({{.name = "a", .dtype = DType::kF64, .shape = {size_t{1} << 32}}});
  EXPECT_NE(message_of([&] { Layout(wide, huge); }).find("less than 2^63 bytes"), std::string::npos);
}

// Every field and every byte of the header, hostile, with and without a checksum that fits. Those that are attached to
// all the same (a changed number that makes sense, a damage behind the header) can be used like any other.
TEST_F(LayoutTest, MutatedHeaderIsABufferOrAnError) {
  std::mt19937_64 generator(3);
  const std::string whole = whole_file();
  test::Mutator mutator({whole.substr(0, kHeaderBytes + 200)}, {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "sparse", "0"}, 5);
  size_t good = 0;
  std::vector<std::byte> a(12), b(40);
  const std::byte* const columns[] = {a.data(), b.data()};
  for (int i = 0; i < 12000; ++i) {
    std::string bytes = whole;
    if (i % 2 == 0) {
      const std::string head = mutator.next();
      bytes.replace(0, std::min(head.size(), bytes.size()), head.substr(0, bytes.size()));
    } else {
      for (size_t damages = 1 + generator() % 3; damages > 0; --damages) {
        bytes[8 + generator() % 72] = static_cast<char>(generator() % 4 == 0 ? 0 : generator());
      }
    }
    if (i % 3 != 0 && bytes.size() > kHeaderBytes) fix_checksum(bytes);
    write(path_, bytes);
    try {
      ReplayBuffer buffer = ReplayBuffer::attach(Storage::in_file(path_));
      if (buffer.schema() == example()) buffer.add(columns, 1);
      ++good;
    } catch (const Error& error) {
      ASSERT_EQ(std::string_view(error.what()).find("[replay]"), 0u) << error.what();
    }
  }
  EXPECT_GT(good, 10u);
  EXPECT_LT(good, 11000u);
}

TEST_F(LayoutTest, OtherFilesAreNotRemoved) {
  const std::string expected =
      Storage::in_file(path_).text() + ": cannot remove: expected a replay buffer, found something else";
  write(path_, "a thesis");
  EXPECT_EQ(message_of([&] { ReplayBuffer::remove(Storage::in_file(path_)); }), expected);
  EXPECT_TRUE(std::filesystem::exists(path_));
  write(path_, changed(8, uint32_t{7}));  // of another version, which no process can attach to any more
  const std::string link = folder_ / "link";
  std::filesystem::create_symlink(path_, link);
  EXPECT_NE(message_of([&] { ReplayBuffer::remove(Storage::in_file(link)); }), "no error");
  EXPECT_TRUE(ReplayBuffer::remove(Storage::in_file(path_)));
  EXPECT_FALSE(ReplayBuffer::remove(Storage::in_file(path_)));
}

}  // namespace
}  // namespace quern::replay
