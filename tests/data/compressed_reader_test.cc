#include "data/compressed_reader.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/compression.h"
#include "data/files.h"
#include "data/stream_text.h"
#include "support/mutation.h"

namespace quern::data {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using test::gzip;
using test::words;
using test::zstd;

class CompressedReaderTest : public ::testing::Test {
 protected:
  // Decompresses `bytes`, in reads of different lengths.
  std::string read(Compression compression, std::string_view bytes, uint64_t skipped = 0) {
    const SteadyFile file(folder_.write("a", bytes));
    const auto reader = decompress(compression, std::make_unique<FileReader>(file), "a");
    reader->skip(skipped);
    std::string out;
    for (size_t size = 1;; size = size * 7 % 100'003 + 1) {
      if (!read_until(*reader, out.size() + size, out)) break;
    }
    EXPECT_LE(reader->consumed(), bytes.size());
    return out;
  }
  std::string error(Compression compression, std::string_view bytes) {
    return error_of([&] { read(compression, bytes); });
  }

  ::quern::test::Folder folder_;
  std::string text_ = words(400'000);
};

TEST_F(CompressedReaderTest, ReadsWhatWasCompressed) {
  for (const std::string& text : {std::string(), std::string("x"), text_}) {
    EXPECT_EQ(read(Compression::kGzip, gzip(text)), text);
    EXPECT_EQ(read(Compression::kZstd, zstd(text)), text);
    EXPECT_EQ(read(Compression::kNone, text), text);
  }
}

// `cat a.gz b.gz`, pigz, pzstd; a skippable frame; the zeros of a tape.
TEST_F(CompressedReaderTest, ReadsAllMembersAndFrames) {
  EXPECT_EQ(read(Compression::kGzip, gzip("one ") + gzip("") + gzip(text_) + gzip("end")), "one " + text_ + "end");
  EXPECT_EQ(read(Compression::kGzip, gzip("one") + std::string(1000, '\0')), "one");
  const std::string skippable("\x50\x2A\x4D\x18\x04\0\0\0skip", 12);
  EXPECT_EQ(read(Compression::kZstd, zstd("one ") + skippable + zstd("") + zstd(text_) + zstd("end")),
            "one " + text_ + "end");
}

TEST_F(CompressedReaderTest, SkipsToAnyPosition) {
  for (const uint64_t at : {uint64_t{0}, uint64_t{1}, uint64_t{100'000}, uint64_t{text_.size()}, UINT64_MAX}) {
    const std::string rest = text_.substr(std::min<uint64_t>(at, text_.size()));
    EXPECT_EQ(read(Compression::kGzip, gzip(text_), at), rest);
    EXPECT_EQ(read(Compression::kZstd, zstd(text_), at), rest);
    EXPECT_EQ(read(Compression::kNone, text_, at), rest);
  }
}

TEST_F(CompressedReaderTest, EveryTruncationIsDetected) {
  const std::string short_text = words(300);
  for (const auto& [compression, whole] :
       {std::pair(Compression::kGzip, gzip(short_text)), std::pair(Compression::kZstd, zstd(short_text))}) {
    for (size_t size = 1; size < whole.size(); ++size) {
      const std::string found = error(compression, whole.substr(0, size));
      ASSERT_TRUE(contains(found, fmt::format("[data] a: byte {}: expected", size))) << size;
      ASSERT_TRUE(contains(found, "found the end: the file is truncated")) << size;
    }
  }
}

TEST_F(CompressedReaderTest, OtherFilesAndGarbageAfterTheEndAreNamed) {
  EXPECT_TRUE(
      contains(error(Compression::kGzip, "plain text"), "a: byte 2: expected gzip data, found damage (incorrect"));
  EXPECT_TRUE(contains(error(Compression::kZstd, "plain text"), "expected zstd data, found damage (Unknown frame"));
  EXPECT_TRUE(contains(error(Compression::kGzip, gzip("text") + "garbage"), "expected gzip data, found damage"));
  EXPECT_TRUE(contains(error(Compression::kZstd, zstd("text") + "garbage"), "expected zstd data, found damage"));
}

// A window of 1 GiB would be allocated for a file of a few bytes.
TEST_F(CompressedReaderTest, LargeWindowsAreRefused) {
  EXPECT_EQ(read(Compression::kZstd, zstd(text_, 27)), text_);
  EXPECT_TRUE(contains(error(Compression::kZstd, zstd(text_, 30)),
                       "found a window above 128 MiB; compress the file again with at most --long=27"));
}

TEST_F(CompressedReaderTest, FilesThatChangeAreRefused) {
  const auto path = folder_.write("b.zst", zstd(text_));
  const SteadyFile file(path);
  const auto reader = decompress(Compression::kZstd, std::make_unique<FileReader>(file), "b.zst");
  folder_.write("b.zst", zstd("other"));
  std::string out;
  EXPECT_TRUE(contains(error_of([&] { read_until(*reader, 10, out); }), "b.zst: changed while it was in use"));
}

// Damaged files give an Error or, if the damage is where no checksum reaches, some text; never anything else.
TEST_F(CompressedReaderTest, MutatedFilesAreReadOrRefused) {
  const std::string text = words(2000);
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    const std::string good = compression == Compression::kGzip ? gzip(text) : zstd(text);
    ::quern::test::Mutator mutator({good, good + good}, {"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xff\xff\xff\xff"}, 1);
    int refused = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::string found = error(compression, mutator.next());
      if (found.empty()) continue;
      ++refused;
      ASSERT_TRUE(contains(found, "[data] a: byte "));
    }
    EXPECT_GT(refused, 2500);
  }
}

TEST(Compression, IsFoundByName) {
  EXPECT_EQ(compression_of("a.txt.gz"), Compression::kGzip);
  EXPECT_EQ(compression_of("a.JSONL.ZST"), Compression::kZstd);
  EXPECT_EQ(compression_of("gz"), Compression::kNone);
  EXPECT_EQ(compression_of("a.gz.txt"), Compression::kNone);
}

}  // namespace
}  // namespace quern::data
