// Batches, and the interfaces through which a prefetcher reads them in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace quern::data {

// A position in a text that is tokenised while it is read: token `token` of piece `piece`. Piece numbers continue to
// increase when the text starts over. Other sources do not need it: their batches depend on the step only.
struct StreamPosition {
  uint64_t piece = 0;
  uint64_t token = 0;
  bool operator==(const StreamPosition&) const = default;
};

// Some sequences of a step: the data of one micro-batch.
struct Batch {
  uint32_t step = 0;
  uint32_t first = 0;      // index of its first sequence within the step
  uint32_t sequences = 0;  // at most PrefetchOptions::micro_batch_size
  std::vector<int32_t> inputs, targets;
  StreamPosition after;  // start of the next sequence
};

class BatchReader {
 public:
  BatchReader() = default;
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  virtual ~BatchReader() = default;

  // Fills inputs, targets and `after` for the sequences given by the other members. They must follow those of the
  // previous call.
  virtual void read(Batch& batch) = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // A reader that starts at `position`, the `after` of the previous batch. The source must outlive the reader.
  virtual std::unique_ptr<BatchReader> reader(const StreamPosition& position) const = 0;

 protected:
  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource& operator=(const BatchSource&) = default;
};

}  // namespace quern::data
