#include "data/batch_source.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/permutation.h"
#include "core/philox.h"

namespace quern::data {
namespace {

// Distinguish uses of Purpose::kShuffle; shuffled_sequences.cc, mixed_batches.cc and chat/conversation_batches.cc use
// 3, 4 and 5.
constexpr uint16_t kPositionLayer = 0;
constexpr uint16_t kOrderLayer = 1;
constexpr uint16_t kShiftLayer = 2;
constexpr uint16_t kLayersPerSource = 8;

// Sources of a mixture have their own random numbers; the first has those of a run without a mixture.
uint16_t layer_of(uint16_t layer, const BatchOptions& options) {
  return static_cast<uint16_t>(layer + kLayersPerSource * options.source);
}

// 0 ... bound - 1 from 64 random bits, as the high half of a product. For bounds below 2^40, no probability deviates
// from uniform by more than 2^-24 of its value.
uint64_t below(uint64_t bound, const RandomStream& stream) {
  const PhiloxBlock words = stream.block(0);
  const uint64_t bits = static_cast<uint64_t>(words[1]) << 32 | words[0];
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * bound >> 64);
}

void check_size(std::string_view part, const TokenRange& range, uint32_t context) {
  if (context == 0) throw Error("[data] expected a context of at least 1 token, found 0");
  if (range.size() > context) return;
  throw Error("[data] {} text: expected at least {} tokens (a context of {} and the one after it), found {}", part,
              static_cast<uint64_t>(context) + 1, context, range.size());
}

// The last target is the only token not in the inputs.
void read_window(const TokenStream& stream, uint64_t position, uint32_t context, int32_t* inputs, int32_t* targets) {
  stream.copy(position, context, inputs);
  std::memcpy(targets, inputs + 1, (context - 1) * sizeof(int32_t));
  stream.copy(position + context, 1, targets + context - 1);
}

class TrainingReader final : public BatchReader {
 public:
  explicit TrainingReader(const TrainingBatches& source) : source_(source) {}
  void read(Batch& batch) override {
    source_.fill(batch.step, batch.first, batch.sequences, batch.columns.ints(kTokensColumn).data(),
                 batch.columns.ints(kTargetsColumn).data());
  }

 private:
  const TrainingBatches& source_;
};

}  // namespace

Split split_by_position(const TokenStream& stream, double validation_fraction) {
  return split_by_position(TokenRange{&stream, 0, stream.size()}, validation_fraction);
}

Split split_by_position(const TokenRange& range, double validation_fraction) {
  if (!(validation_fraction >= 0 && validation_fraction < 1)) {
    throw Error("[data] expected a validation fraction from 0 to below 1, found {}", validation_fraction);
  }
  const uint64_t size = range.size();
  if (size == 0) throw Error("[data] expected text, found 0 tokens");
  const auto train = static_cast<uint64_t>(std::floor(static_cast<double>(size) * (1 - validation_fraction)));
  const uint64_t cut = validation_fraction == 0 ? size : std::min(train, size);
  return {{range.stream, range.begin, range.begin + cut}, {range.stream, range.begin + cut, range.end}};
}

TrainingBatches::TrainingBatches(TokenRange range, const BatchOptions& options) : range_(range), options_(options) {
  check_size("training", range_, options_.context);
  if (options_.sequences_per_step == 0) throw Error("[data] expected at least 1 sequence per step, found 0");
  blocks_ = (range_.size() - 1) / options_.context;
}

void TrainingBatches::fill(uint32_t step, uint32_t first, uint32_t count, int32_t* inputs, int32_t* targets) const {
  assert(first <= options_.sequences_per_step && count <= options_.sequences_per_step - first);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t row = static_cast<size_t>(i) * options_.context;
    read_window(*range_.stream, position(step, first + i), options_.context, inputs + row, targets + row);
  }
}

std::unique_ptr<BatchReader> TrainingBatches::reader(const StreamPosition&) const {
  return std::make_unique<TrainingReader>(*this);
}

uint64_t TrainingBatches::position(uint32_t step, uint32_t sequence) const {
  if (options_.order == Order::kRandom) return random_position(step, sequence);
  assert(step >= options_.first_step);
  const uint64_t steps = step - options_.first_step;
  return block_position(options_.first_sequence + steps * options_.sequences_per_step + sequence);
}

uint64_t TrainingBatches::steps_per_epoch() const {
  return (blocks_ + options_.sequences_per_step - 1) / options_.sequences_per_step;
}

uint64_t TrainingBatches::random_position(uint32_t step, uint32_t sequence) const {
  const RandomStream stream{.seed = options_.seed,
                            .purpose = Purpose::kShuffle,
                            .layer = layer_of(kPositionLayer, options_),
                            .step = step,
                            .sequence = sequence};
  return range_.begin + below(range_.size() - options_.context, stream);
}

void TrainingBatches::fill_block(uint64_t index, int32_t* inputs, int32_t* targets) const {
  read_window(*range_.stream, block_position(index), options_.context, inputs, targets);
}

uint64_t TrainingBatches::block_position(uint64_t index) const {
  const auto epoch = static_cast<uint32_t>(index / blocks_);
  const Permutation order(
      blocks_,
      {.seed = options_.seed, .purpose = Purpose::kShuffle, .layer = layer_of(kOrderLayer, options_), .step = epoch});
  const uint64_t block = order(index % blocks_);
  const uint64_t left_out = range_.size() - 1 - blocks_ * options_.context;
  const RandomStream stream{.seed = options_.seed,
                            .purpose = Purpose::kShuffle,
                            .layer = layer_of(kShiftLayer, options_),
                            .step = epoch,
                            .sequence = 0};
  return range_.begin + below(left_out + 1, stream) + block * options_.context;
}

ValidationBatches::ValidationBatches(TokenRange range, uint32_t context, uint64_t max_windows)
    : ValidationBatches(std::vector<HeldOut>{{range}}, context, max_windows) {}

ValidationBatches::ValidationBatches(const std::vector<HeldOut>& sources, uint32_t context, uint64_t max_windows)
    : sources_(sources), context_(context) {
  assert(!sources.empty());
  for (const HeldOut& source : sources_) check_size("validation", source.range, context_);
  windows_ = std::min((sources_.front().range.size() - 1) / context_, max_windows);
  if (sources_.size() > 1) mix(sources, max_windows);
}

// The next window is of the source that is furthest behind its share.
void ValidationBatches::mix(const std::vector<HeldOut>& sources, uint64_t max_windows) {
  std::vector<uint64_t> used(sources.size(), 0);
  while (order_.size() < max_windows) {
    const auto behind = [&](size_t i) { return (static_cast<double>(used[i]) + 0.5) / sources[i].weight; };
    size_t next = 0;
    for (size_t i = 1; i < sources.size(); ++i) {
      if (behind(i) < behind(next)) next = i;
    }
    if (used[next] == (sources[next].range.size() - 1) / context_) break;
    order_.emplace_back(static_cast<uint32_t>(next), used[next]++);
  }
  windows_ = order_.size();
}

TokenRange ValidationBatches::window(uint64_t index) const {
  const auto [source, window] = order_.empty() ? std::pair(0u, index) : order_[index];
  const TokenRange& range = sources_[source].range;
  return {range.stream, range.begin + window * context_, range.end};
}

void ValidationBatches::fill(uint64_t first, uint32_t count, int32_t* inputs, int32_t* targets) const {
  assert(first <= windows_ && count <= windows_ - first);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t row = static_cast<size_t>(i) * context_;
    const TokenRange from = window(first + i);
    read_window(*from.stream, from.begin, context_, inputs + row, targets + row);
  }
}

}  // namespace quern::data
