#include "data/mixed_batches.h"

#include <cassert>
#include <numeric>
#include <utility>

#include "core/philox.h"

namespace quern::data {
namespace {

constexpr uint16_t kSourceLayer = 4;  // distinguishes uses of Purpose::kShuffle; batch_source.cc has the others

class MixedReader final : public BatchReader {
 public:
  MixedReader(uint64_t seed, const std::vector<MixedBatches::Source>& sources, const StreamPosition& position)
      : seed_(seed), context_(sources.front().sequences->context()) {
    for (size_t i = 0; i < sources.size(); ++i) {
      weights_.push_back(sources[i].weight);
      readers_.push_back(sources[i].sequences->reader(position.of(i)));
    }
  }

  void read(Batch& batch) override {
    int32_t* tokens = batch.columns.ints(kTokensColumn).data();
    int32_t* targets = batch.columns.ints(kTargetsColumn).data();
    for (uint32_t i = 0; i < batch.sequences; ++i) {
      next(batch.step, batch.first + i, tokens + i * context_, targets + i * context_);
    }
    tell(batch.after);
  }

  void skip(uint32_t step, const Range& sequences, StreamPosition& after) override {
    skipped_.resize(2 * context_);
    for (size_t i = sequences.begin; i < sequences.end; ++i) {
      next(step, static_cast<uint32_t>(i), skipped_.data(), skipped_.data() + context_);
    }
    tell(after);
  }

 private:
  void next(uint32_t step, uint32_t sequence, int32_t* tokens, int32_t* targets) {
    const size_t source = weights_.size() == 1 ? 0 : draw_source(seed_, step, sequence, weights_);
    readers_[source]->next(step, sequence, tokens, targets);
  }

  void tell(StreamPosition& position) const {
    position.sources.resize(readers_.size());
    for (size_t i = 0; i < readers_.size(); ++i) position.sources[i] = readers_[i]->position();
  }

  uint64_t seed_;
  size_t context_;
  std::vector<double> weights_;
  std::vector<std::unique_ptr<SequenceReader>> readers_;
  std::vector<int32_t> skipped_;
};

}  // namespace

// 53 random bits as a fraction of the sum of weights: exact arithmetic that is the same everywhere.
size_t draw_source(uint64_t seed, uint32_t step, uint32_t sequence, const std::vector<double>& weights) {
  const PhiloxBlock words =
      RandomStream{
          .seed = seed, .purpose = Purpose::kShuffle, .layer = kSourceLayer, .step = step, .sequence = sequence}
          .block(0);
  const uint64_t bits = static_cast<uint64_t>(words[1]) << 32 | words[0];
  const double drawn = static_cast<double>(bits >> 11) * 0x1p-53 * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    sum += weights[i];
    if (drawn < sum) return i;
  }
  return weights.size() - 1;
}

MixedBatches::MixedBatches(uint64_t seed, std::vector<Source> sources) : seed_(seed), sources_(std::move(sources)) {
  assert(!sources_.empty());
}

std::unique_ptr<BatchReader> MixedBatches::reader(const StreamPosition& position) const {
  return std::make_unique<MixedReader>(seed_, sources_, position);
}

}  // namespace quern::data
