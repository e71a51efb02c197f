#include "train/batch_broadcast.h"

#include <algorithm>
#include <utility>

#include "dist/tags.h"

namespace quern::train {
namespace {

constexpr size_t kNumbersPerSource = 4;

}  // namespace

BatchBroadcast::BatchBroadcast(dist::Communicator& ranks, const StepCut& cut, const data::BatchSource& source,
                               Options options)
    : ranks_(ranks), cut_(cut), options_(std::move(options)), step_(options_.first_step) {
  const bool reads = ranks.rank() == 0;
  messages_.resize(reads ? ranks.size() : 1);
  for (size_t i = 0; i < messages_.size(); ++i) {
    const size_t sequences = cut.sequences_of(reads ? i : ranks.rank()).size();
    if (reads && i == 0) continue;
    messages_[i] = {.numbers = std::vector<uint64_t>(2 + kNumbersPerSource * options_.sources),
                    .tokens = std::vector<int32_t>(sequences * options_.context),
                    .targets = std::vector<int32_t>(sequences * options_.context)};
  }
  if (reads) {
    reader_ = source.reader(options_.position);
    size_t largest = 0;
    for (size_t rank = 1; rank < ranks.size(); ++rank) largest = std::max(largest, cut.sequences_of(rank).size());
    read_.columns = Columns(source.columns(), largest);
    return;
  }
  for (const StepPart& part : options_.parts) {
    batches_.emplace_back();
    batches_.back().columns = Columns(source.columns(), part.sequences.size());
  }
}

void BatchBroadcast::next_step() {
  if (ranks_.rank() == 0) {
    send();
  } else {
    receive();
  }
  for (const dist::Communicator::Request request : requests_) dist::wait(ranks_, request);
  requests_.clear();
  if (ranks_.rank() != 0) take();
  ++step_;
}

// Rank 0 passes over its own sequences, which are the first of the step: its prefetcher has them.
void BatchBroadcast::send() {
  data::StreamPosition passed;
  reader_->skip(step_, cut_.sequences_of(0), passed);
  for (size_t rank = 1; rank < ranks_.size(); ++rank) read(rank);
  for (size_t rank = 1; rank < ranks_.size(); ++rank) {
    Message& message = messages_[rank];
    message.numbers[0] = read_.counted_targets;
    message.numbers[1] = read_.after.sources.size();
    for (size_t i = 0; i < read_.after.sources.size(); ++i) {
      const data::SourcePosition& at = read_.after.sources[i];
      const uint64_t values[] = {at.file, at.piece, at.token, at.drawn};
      std::copy(std::begin(values), std::end(values), message.numbers.data() + 2 + kNumbersPerSource * i);
    }
    requests_.push_back(ranks_.send(rank, dist::kNumbersTag, std::as_bytes(std::span(message.numbers))));
    requests_.push_back(ranks_.send(rank, dist::kTokensTag, std::as_bytes(std::span(message.tokens))));
    requests_.push_back(ranks_.send(rank, dist::kTargetsTag, std::as_bytes(std::span(message.targets))));
  }
}

void BatchBroadcast::read(size_t rank) {
  const Range sequences = cut_.sequences_of(rank);
  read_.step = step_;
  read_.first = static_cast<uint32_t>(sequences.begin);
  read_.sequences = static_cast<uint32_t>(sequences.size());
  read_.counted_targets = cut_.sequences * options_.context;
  reader_->read(read_);
  const size_t count = sequences.size() * options_.context;
  std::copy_n(read_.columns.ints(kTokensColumn).data(), count, messages_[rank].tokens.data());
  std::copy_n(read_.columns.ints(kTargetsColumn).data(), count, messages_[rank].targets.data());
}

void BatchBroadcast::receive() {
  Message& message = messages_[0];
  requests_.push_back(ranks_.receive(0, dist::kNumbersTag, std::as_writable_bytes(std::span(message.numbers))));
  requests_.push_back(ranks_.receive(0, dist::kTokensTag, std::as_writable_bytes(std::span(message.tokens))));
  requests_.push_back(ranks_.receive(0, dist::kTargetsTag, std::as_writable_bytes(std::span(message.targets))));
}

void BatchBroadcast::take() {
  const Message& message = messages_[0];
  const size_t first = cut_.sequences_of(ranks_.rank()).begin;
  for (size_t i = 0; i < batches_.size(); ++i) {
    const Range& sequences = options_.parts[i].sequences;
    data::Batch& batch = batches_[i];
    batch.step = step_;
    batch.first = static_cast<uint32_t>(sequences.begin);
    batch.sequences = static_cast<uint32_t>(sequences.size());
    batch.counted_targets = message.numbers[0];
    const size_t at = (sequences.begin - first) * options_.context, count = sequences.size() * options_.context;
    std::copy_n(message.tokens.data() + at, count, batch.columns.ints(kTokensColumn).data());
    std::copy_n(message.targets.data() + at, count, batch.columns.ints(kTargetsColumn).data());
    batch.after.sources.resize(message.numbers[1]);
    for (size_t s = 0; s < batch.after.sources.size(); ++s) {
      const uint64_t* values = message.numbers.data() + 2 + kNumbersPerSource * s;
      batch.after.sources[s] = {.file = values[0], .piece = values[1], .token = values[2], .drawn = values[3]};
    }
  }
}

}  // namespace quern::train
