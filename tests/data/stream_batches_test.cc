#include "data/stream_batches.h"

#include <gtest/gtest.h>

#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/files.h"
#include "data/prefetcher.h"
#include "data/stream_text.h"
#include "support/watchdog.h"

namespace quern::data {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using test::in_memory;
using test::words;

constexpr uint32_t kContext = 50;

Batch batch_of(uint32_t sequences) {
  Batch batch;
  batch.sequences = sequences;
  batch.columns = Columns(
      {{kTokensColumn, ColumnType::kInt32, kContext}, {kTargetsColumn, ColumnType::kInt32, kContext}}, sequences);
  return batch;
}

// Byte tokens, so that token i of the stream is byte i of the text, over and over.
class StreamBatchesTest : public ::testing::Test {
 protected:
  StreamBatches source(size_t producers = 1) const {
    return {TextPieces(in_memory(text_)), tokenizer_, {.context = kContext, .producers = producers}};
  }
  int32_t token(uint64_t at) const { return static_cast<unsigned char>(text_[at % text_.size()]); }
  void expect_window(const Batch& batch, uint32_t sequence, uint64_t window) const {
    for (uint32_t t = 0; t < kContext; ++t) {
      const uint64_t at = window * kContext + t;
      ASSERT_EQ(batch.columns.ints(kTokensColumn)[sequence * kContext + t], token(at)) << at;
      ASSERT_EQ(batch.columns.ints(kTargetsColumn)[sequence * kContext + t], token(at + 1)) << at;
    }
  }

  std::string text_ = words(3 * TextPieces::kPieceBytes + 1234);
  ByteTokenizer tokenizer_;
};

TEST_F(StreamBatchesTest, SequencesAreConsecutiveAndWrapAround) {
  const ::quern::test::Watchdog watchdog("stream");
  for (const size_t producers : {1, 2, 3, 8}) {
    const StreamBatches batches = source(producers);
    const auto reader = batches.reader({});
    Batch batch = batch_of(7);
    for (uint64_t window = 0; window * kContext < 2 * text_.size() + 1000; window += 7) {
      reader->read(batch);
      for (uint32_t i = 0; i < 7; ++i) expect_window(batch, i, window + i);
    }
  }
}

// Promise I4: a new reader continues with the same tokens from the end of any batch.
TEST_F(StreamBatchesTest, ResumesFromAnyPosition) {
  const ::quern::test::Watchdog watchdog("positions");
  const StreamBatches batches = source();
  const auto whole = batches.reader({});
  Batch expected = batch_of(101), found = batch_of(101);
  StreamPosition position;
  for (int i = 0; i < 80; ++i) {
    whole->read(expected);
    batches.reader(position)->read(found);
    ASSERT_TRUE(found.columns == expected.columns) << i;
    ASSERT_EQ(found.after, expected.after) << i;
    position = found.after;
  }
  EXPECT_GT(position.piece, 4u);  // once around
}

TEST_F(StreamBatchesTest, PositionOutsideTheTextIsAnError) {
  const ::quern::test::Watchdog watchdog("bad position");
  const StreamBatches batches = source();
  Batch batch = batch_of(1);
  EXPECT_EQ(error_of([&] { batches.reader({.piece = 3, .token = 1'000'000})->read(batch); }).substr(0, 47),
            "[data] position in the text: expected at most t");
  batches.reader({.piece = UINT64_MAX / 2, .token = 0})->read(batch);  // some cycle
}

TEST_F(StreamBatchesTest, NothingBeforeThePositionIsRead) {
  const ::quern::test::Watchdog watchdog("jump");
  const ::quern::test::Folder folder;
  const auto first = folder.write("a.txt", text_), second = folder.write("b.txt", text_);
  const TextPieces pieces(text_sources(Corpus({first, second})));
  const StreamBatches batches(pieces, tokenizer_, {.context = kContext});
  std::filesystem::remove(first);
  Batch batch = batch_of(3);
  batches.reader({.piece = 4, .token = 0})->read(batch);
  expect_window(batch, 0, 0);
  EXPECT_TRUE(contains(error_of([&] { batches.reader({})->read(batch); }), "a.txt: cannot open"));
}

TEST_F(StreamBatchesTest, PrefetcherDeliversBatchesAndErrorsInOrder) {
  const ::quern::test::Watchdog watchdog("prefetched stream");
  const ::quern::test::Folder folder;
  const auto file = folder.write("a.txt", text_);
  const TextPieces pieces(text_sources(Corpus({file})));
  const StreamBatches batches(pieces, tokenizer_, {.context = kContext, .producers = 2});
  Prefetcher prefetcher(batches, {.context = kContext, .sequences_per_step = 4, .micro_batch_size = 3});
  uint64_t window = 0;
  const auto read_some = [&](int n) {
    for (int i = 0; i < n; ++i) {
      Batch* batch = prefetcher.next();
      for (uint32_t s = 0; s < batch->sequences; ++s) expect_window(*batch, s, window++);
      prefetcher.give_back(batch);
    }
  };
  read_some(300);
  std::filesystem::resize_file(file, 100);
  EXPECT_TRUE(contains(error_of([&] { read_some(100'000); }), "a.txt: changed while it was in use"));
  EXPECT_GT(window, 600u);
}

TEST(StreamBatches, TextWithoutTokensIsAnError) {
  const ::quern::test::Watchdog watchdog("empty");
  const ::quern::test::Folder folder;
  const auto file = folder.write("a.jsonl", "{\"text\": \"\"}\n");
  const ByteTokenizer tokenizer;
  const StreamBatches batches(TextPieces(text_sources(Corpus({file}))), tokenizer, {.context = kContext});
  Batch batch = batch_of(1);
  EXPECT_TRUE(contains(error_of([&] { batches.reader({})->read(batch); }), "expected text, found"));
  EXPECT_TRUE(contains(error_of([&] { StreamBatches({}, tokenizer, {.context = kContext}); }), "found none"));
}

// A character that was not there when the tokenizer was made.
TEST(StreamBatches, TextOutsideTheVocabularyIsReportedWithItsPosition) {
  const ::quern::test::Watchdog watchdog("not taken");
  const auto tokenizer = CharTokenizer::from_text("abc ", "test");
  const StreamBatches batches(TextPieces(in_memory("abc abz")), *tokenizer, {.context = 2});
  Batch batch = batch_of(1);
  EXPECT_TRUE(contains(error_of([&] { batches.reader({})->read(batch); }), "[data] memory: after byte 0: "));
}

}  // namespace
}  // namespace quern::data
