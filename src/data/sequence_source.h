// Sequences of one source of text, in an order that the source decides.
#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_reader.h"

namespace quern::data {

class SequenceReader {
 public:
  SequenceReader() = default;
  SequenceReader(const SequenceReader&) = delete;
  SequenceReader& operator=(const SequenceReader&) = delete;
  virtual ~SequenceReader() = default;

  // Reads the next sequence, `context` inputs and targets, which is sequence `sequence` of step `step`.
  virtual void next(uint32_t step, uint32_t sequence, int32_t* inputs, int32_t* targets) = 0;

  // From where a new reader returns the same sequences as this one will.
  virtual SourcePosition position() const = 0;
};

class SequenceSource {
 public:
  SequenceSource() = default;
  SequenceSource(const SequenceSource&) = delete;
  SequenceSource& operator=(const SequenceSource&) = delete;
  virtual ~SequenceSource() = default;

  virtual uint32_t context() const = 0;

  // This source must outlive the reader.
  virtual std::unique_ptr<SequenceReader> reader(const SourcePosition& position) const = 0;
};

}  // namespace quern::data
