#include "data/shuffled_sequences.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/permutation.h"

namespace quern::data {
namespace {

constexpr uint16_t kWindowLayer = 3;  // distinguishes uses of Purpose::kShuffle; batch_source.cc has the others

class ShuffledReader final : public SequenceReader {
 public:
  ShuffledReader(const SequenceSource& source, const ShuffleOptions& options, const SourcePosition& position)
      : options_(options),
        context_(source.context()),
        source_(source.reader(position)),
        start_(position),
        drawn_(position.drawn) {}

  void next(uint32_t, uint32_t, int32_t* inputs, int32_t* targets) override {
    if (current_.empty()) start();
    const uint64_t index = drawn_ % options_.window;
    const int32_t* sequence = current_.data() + order()(index) * (context_ + 1);
    std::copy_n(sequence, context_, inputs);
    std::copy_n(sequence + 1, context_, targets);
    read_one(following_, index);
    ++drawn_;
    if (drawn_ % options_.window == 0) {
      std::swap(current_, following_);
      start_ = std::exchange(following_start_, source_->position());
    }
  }

  SourcePosition position() const override {
    SourcePosition position = start_;
    position.drawn = drawn_;
    return position;
  }

 private:
  void start() {
    current_.resize(options_.window * (context_ + 1));
    following_.resize(current_.size());
    for (uint64_t i = 0; i < options_.window; ++i) read_one(current_, i);
    following_start_ = source_->position();
    for (uint64_t i = 0; i < drawn_ % options_.window; ++i) read_one(following_, i);
  }

  void read_one(std::vector<int32_t>& window, uint64_t index) {
    int32_t* sequence = window.data() + index * (context_ + 1);
    source_->next(0, 0, sequence, targets_.data());
    sequence[context_] = targets_.back();
  }

  Permutation order() const {
    return {options_.window,
            {.seed = options_.seed,
             .purpose = Purpose::kShuffle,
             .layer = kWindowLayer,
             .step = static_cast<uint32_t>(drawn_ / options_.window),
             .sequence = options_.source * Permutation::kRounds}};
  }

  ShuffleOptions options_;
  size_t context_;
  std::unique_ptr<SequenceReader> source_;
  std::vector<int32_t> current_, following_;  // windows of sequences, each context + 1 tokens
  std::vector<int32_t> targets_ = std::vector<int32_t>(context_);
  SourcePosition start_, following_start_;  // of the windows
  uint64_t drawn_;
};

}  // namespace

ShuffledSequences::ShuffledSequences(std::unique_ptr<const SequenceSource> source, const ShuffleOptions& options)
    : source_(std::move(source)), options_(options) {}

std::unique_ptr<SequenceReader> ShuffledSequences::reader(const SourcePosition& position) const {
  return std::make_unique<ShuffledReader>(*source_, options_, position);
}

}  // namespace quern::data
