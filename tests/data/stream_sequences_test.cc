#include "data/stream_sequences.h"

#include <gtest/gtest.h>

#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/files.h"
#include "data/mixed_batches.h"
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

// Batches of a single source.
MixedBatches stream_of(TextPieces text, const Tokenizer& tokenizer, const StreamOptions& options) {
  std::vector<MixedBatches::Source> sources;
  sources.push_back({std::make_unique<StreamSequences>(std::move(text), tokenizer, options)});
  return {1, std::move(sources)};
}

StreamPosition at(uint64_t piece, uint64_t token) { return {{{.file = 0, .piece = piece, .token = token}}}; }

// Byte tokens, so that token i of the stream is byte i of the text, over and over.
class StreamSequencesTest : public ::testing::Test {
 protected:
  MixedBatches source(size_t producers = 1) const {
    return stream_of(TextPieces(in_memory(text_)), tokenizer_, {.context = kContext, .producers = producers});
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

TEST_F(StreamSequencesTest, SequencesAreConsecutiveAndWrapAround) {
  const ::quern::test::Watchdog watchdog("stream");
  for (const size_t producers : {1, 2, 3, 8}) {
    const MixedBatches batches = source(producers);
    const auto reader = batches.reader({});
    Batch batch = batch_of(7);
    for (uint64_t window = 0; window * kContext < 2 * text_.size() + 1000; window += 7) {
      reader->read(batch);
      for (uint32_t i = 0; i < 7; ++i) expect_window(batch, i, window + i);
    }
  }
}

// Promise I4: a new reader continues with the same tokens from the end of any batch.
TEST_F(StreamSequencesTest, ResumesFromAnyPosition) {
  const ::quern::test::Watchdog watchdog("positions");
  const MixedBatches batches = source();
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
  EXPECT_GT(position.of(0).piece, 4u);  // once around
}

TEST_F(StreamSequencesTest, PositionOutsideTheTextIsAnError) {
  const ::quern::test::Watchdog watchdog("bad position");
  const MixedBatches batches = source();
  Batch batch = batch_of(1);
  EXPECT_EQ(error_of([&] { batches.reader(at(3, 1'000'000))->read(batch); }).substr(0, 47),
            "[data] position in the text: expected at most t");
  batches.reader(at(UINT64_MAX / 2, 0))->read(batch);  // some cycle
}

TEST_F(StreamSequencesTest, NothingBeforeThePositionIsRead) {
  const ::quern::test::Watchdog watchdog("jump");
  const ::quern::test::Folder folder;
  const auto first = folder.write("a.txt", text_), second = folder.write("b.txt", text_);
  const TextPieces pieces(text_sources(Corpus({first, second})));
  const MixedBatches batches = stream_of(pieces, tokenizer_, {.context = kContext});
  std::filesystem::remove(first);
  Batch batch = batch_of(3);
  batches.reader(at(4, 0))->read(batch);
  expect_window(batch, 0, 0);
  EXPECT_TRUE(contains(error_of([&] { batches.reader({})->read(batch); }), "a.txt: cannot open"));
}

TEST_F(StreamSequencesTest, PrefetcherDeliversBatchesAndErrorsInOrder) {
  const ::quern::test::Watchdog watchdog("prefetched stream");
  const ::quern::test::Folder folder;
  const auto file = folder.write("a.txt", text_);
  const TextPieces pieces(text_sources(Corpus({file})));
  const MixedBatches batches = stream_of(pieces, tokenizer_, {.context = kContext, .producers = 2});
  Prefetcher prefetcher(batches,
                        {.targets_per_sequence = kContext, .sequences_per_step = 4, .batches = {{0, 3}, {3, 4}}});
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

TEST(StreamSequences, TextWithoutTokensIsAnError) {
  const ::quern::test::Watchdog watchdog("empty");
  const ::quern::test::Folder folder;
  const auto file = folder.write("a.jsonl", "{\"text\": \"\"}\n");
  const ByteTokenizer tokenizer;
  const MixedBatches batches = stream_of(TextPieces(text_sources(Corpus({file}))), tokenizer, {.context = kContext});
  Batch batch = batch_of(1);
  EXPECT_TRUE(contains(error_of([&] { batches.reader({})->read(batch); }), "expected text, found"));
  EXPECT_TRUE(contains(error_of([&] { StreamSequences({}, tokenizer, {.context = kContext}); }), "found none"));
}

// A character that was not there when the tokenizer was made.
TEST(StreamSequences, TextOutsideTheVocabularyIsReportedWithItsPosition) {
  const ::quern::test::Watchdog watchdog("not taken");
  const auto tokenizer = CharTokenizer::from_text("abc ", "test");
  const MixedBatches batches = stream_of(TextPieces(in_memory("abc abz")), *tokenizer, {.context = 2});
  Batch batch = batch_of(1);
  EXPECT_TRUE(contains(error_of([&] { batches.reader({})->read(batch); }), "[data] memory: after byte 0: "));
}

}  // namespace
}  // namespace quern::data
