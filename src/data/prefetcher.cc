#include "data/prefetcher.h"

#include <algorithm>

namespace quern::data {

Prefetcher::Prefetcher(const BatchSource& source, const PrefetchOptions& options)
    : source_(source), options_(options), free_(kAhead), ready_(kAhead) {
  size_t largest = 0;
  for (const Range& batch : options.batches) largest = std::max(largest, batch.size());
  for (size_t i = 0; i < kAhead; ++i) {
    batches_.push_back(std::make_unique<Batch>());
    batches_.back()->columns = Columns(source.columns(), largest);
    free_.push(batches_.back().get());
  }
  producer_ = std::thread([this] { produce(); });
}

Prefetcher::~Prefetcher() {
  stop();
  producer_.join();
}

void Prefetcher::stop() noexcept {
  free_.close();
  ready_.close();
}

void Prefetcher::produce() {
  try {
    const std::unique_ptr<BatchReader> reader = source_.reader(options_.position);
    for (uint32_t step = options_.first_step; produce_step(*reader, step); ++step) {
    }
  } catch (...) {
    failure_ = std::current_exception();
    failed_.store(true, std::memory_order_release);  // pairs with the acquire in next()
    ready_.close();
  }
}

// Passes over the sequences of a step that are in none of its batches. Returns false if the prefetcher was stopped.
bool Prefetcher::produce_step(BatchReader& reader, uint32_t step) {
  size_t next = 0;
  StreamPosition passed;
  for (const Range& sequences : options_.batches) {
    const std::optional<Batch*> batch = free_.pop();
    if (!batch || free_.closed()) return false;
    Batch& b = **batch;
    b.step = step;
    b.first = static_cast<uint32_t>(sequences.begin);
    b.sequences = static_cast<uint32_t>(sequences.size());
    b.counted_targets = uint64_t{options_.sequences_per_step} * options_.targets_per_sequence;
    if (sequences.begin > next) reader.skip(step, {next, sequences.begin}, passed);
    reader.read(b);
    next = sequences.end;
    const bool last = &sequences == &options_.batches.back();
    if (last && next < options_.sequences_per_step) reader.skip(step, {next, options_.sequences_per_step}, b.after);
    if (!ready_.push(&b)) return false;
  }
  return true;
}

Batch* Prefetcher::next() {
  const std::optional<Batch*> batch = ready_.pop();
  if (!batch && failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
  return batch.value_or(nullptr);
}

}  // namespace quern::data
