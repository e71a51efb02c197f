// Batches one after the other, as a prefetcher reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace quern::data {

// A place in a text that is tokenised while it is read: token `token` of piece `piece`. Pieces count on when the text
// starts again. Other sources do not need it: their batches follow from the step.
struct StreamPosition {
  uint64_t piece = 0;
  uint64_t token = 0;
  bool operator==(const StreamPosition&) const = default;
};

// Some sequences of a step: what one micro-batch is made of.
struct Batch {
  uint32_t step = 0;
  uint32_t first = 0;      // of its sequences, counted within the step
  uint32_t sequences = 0;  // at most as many as asked for at once
  std::vector<int32_t> inputs, targets;
  StreamPosition after;  // where the next sequence starts
};

class BatchReader {
 public:
  BatchReader() = default;
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  virtual ~BatchReader() = default;

  // Fills inputs, targets and `after` for the sequences that the batch names, which are those after the last call's.
  virtual void read(Batch& batch) = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Goes on from where `position` is, `after` of the batch before. The source must outlive the reader.
  virtual std::unique_ptr<BatchReader> reader(const StreamPosition& position) const = 0;

 protected:
  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource& operator=(const BatchSource&) = default;
};

}  // namespace quern::data
