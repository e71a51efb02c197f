#include "data/shuffled_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "data/byte_tokenizer.h"
#include "data/compression.h"
#include "data/files.h"
#include "data/stream_sequences.h"
#include "data/stream_text.h"
#include "support/watchdog.h"

namespace quern::data {
namespace {

using test::words;

constexpr uint32_t kContext = 20, kWindow = 37;
using Sequence = std::vector<int32_t>;  // inputs and the last target

Sequence next_of(SequenceReader& reader) {
  Sequence inputs(kContext), targets(kContext);
  reader.next(0, 0, inputs.data(), targets.data());
  EXPECT_TRUE(std::equal(inputs.begin() + 1, inputs.end(), targets.begin()));
  inputs.push_back(targets.back());
  return inputs;
}

class ShuffledSequencesTest : public ::testing::Test {
 protected:
  ShuffledSequencesTest() {
    folder_.write("a.txt.zst", test::zstd(words(4 * TextPieces::kPieceBytes, 1)));
    folder_.write("b.txt.gz", test::gzip(words(2 * TextPieces::kPieceBytes, 2)));
    folder_.write("c.txt", words(TextPieces::kPieceBytes, 3));
    text_ = TextPieces(text_sources(Corpus({folder_.path()})));
  }
  std::unique_ptr<SequenceSource> in_order(size_t producers = 1) const {
    return std::make_unique<StreamSequences>(text_, tokenizer_,
                                             StreamOptions{.context = kContext, .producers = producers});
  }
  ShuffledSequences shuffled(uint64_t seed = 1, size_t producers = 1) const {
    return {in_order(producers), {.seed = seed, .window = kWindow}};
  }

  ::quern::test::Folder folder_;
  ByteTokenizer tokenizer_;
  TextPieces text_;
};

TEST_F(ShuffledSequencesTest, EachWindowIsAPermutationOfTheText) {
  const ::quern::test::Watchdog watchdog("windows");
  const auto source = in_order();
  const ShuffledSequences other = shuffled();
  const auto plain = source->reader({}), mixed = other.reader({});
  std::set<std::vector<size_t>> orders;
  for (int window = 0; window < 20; ++window) {
    std::vector<Sequence> expected, found;
    for (uint32_t i = 0; i < kWindow; ++i) {
      expected.push_back(next_of(*plain));
      found.push_back(next_of(*mixed));
    }
    EXPECT_NE(found, expected);
    EXPECT_TRUE(std::is_permutation(found.begin(), found.end(), expected.begin()));
    std::vector<size_t> order;
    for (const Sequence& sequence : found) {
      order.push_back(static_cast<size_t>(std::find(expected.begin(), expected.end(), sequence) - expected.begin()));
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20u);  // another order in each
}

// Compressed files, in order and shuffled: the number of threads changes nothing, the seed does.
TEST_F(ShuffledSequencesTest, AnyNumberOfProducersGivesTheSameSequences) {
  const ::quern::test::Watchdog watchdog("producers");
  std::vector<std::vector<Sequence>> results;
  for (const size_t producers : {1, 2, 3, 8}) {
    const ShuffledSequences source = shuffled(1, producers);
    const auto reader = source.reader({});
    results.emplace_back();
    for (int i = 0; i < 50'000; ++i) results.back().push_back(next_of(*reader));  // once around and more
    EXPECT_EQ(results.back(), results.front()) << producers;
  }
  const ShuffledSequences other = shuffled(2);
  EXPECT_NE(next_of(*other.reader({})), results.front().front());
}

// Promise I4: within windows, at their ends, in every file, and after the text has started over.
TEST_F(ShuffledSequencesTest, ResumesFromAnyPosition) {
  const ::quern::test::Watchdog watchdog("positions");
  const ShuffledSequences source = shuffled();
  const auto whole = source.reader({});
  std::set<uint64_t> files;
  for (int i = 0; i < 40'000; ++i) {
    const SourcePosition position = whole->position();
    files.insert(position.file);
    const Sequence expected = next_of(*whole);
    if (i % 997 != 0 && i % 37'000 > 2) continue;
    const auto resumed = source.reader(position);
    ASSERT_EQ(next_of(*resumed), expected) << i;
    ASSERT_EQ(resumed->position(), whole->position()) << i;
  }
  EXPECT_GE(files.size(), 4u);
}

}  // namespace
}  // namespace quern::data
