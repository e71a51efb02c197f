// Batches, and the interfaces through which a prefetcher reads them in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/columns.h"
#include "core/range.h"

namespace quern::data {

// A position in a text that is tokenised while it is read: token `token` of a piece (PieceIndex in text_pieces.h).
// Without shuffling, the next sequence starts there; with it, the current window of sequences does.
struct SourcePosition {
  uint64_t file = 0;
  uint64_t piece = 0;
  uint64_t token = 0;
  uint64_t drawn = 0;  // sequences so far; 0 if the source does not need it
  bool operator==(const SourcePosition&) const = default;
};

// Where the next sequence begins, for every source of a mixture; empty at the start. A single source of tokens needs no
// position: its batches depend on the step only.
struct StreamPosition {
  std::vector<SourcePosition> sources = {};

  SourcePosition of(size_t source) const { return source < sources.size() ? sources[source] : SourcePosition(); }
  bool operator==(const StreamPosition&) const = default;
};

// Some sequences of a step: the data of one micro-batch.
struct Batch {
  uint32_t step = 0;
  uint32_t first = 0;      // index of its first sequence within the step
  uint32_t sequences = 0;  // at most those of the largest in PrefetchOptions::batches
  // Targets of the whole step that count for the loss, known before the step starts: the loss is divided by it, so that
  // the result does not depend on the cut into rounds and micro-batches. At first all; read() may lower it.
  uint64_t counted_targets = 0;
  Columns columns;       // of BatchSource::columns(), with room for that many sequences
  StreamPosition after;  // start of the next sequence
};

class BatchReader {
 public:
  BatchReader() = default;
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  virtual ~BatchReader() = default;

  // Fills the columns and `after` for the sequences given by the other members, and lowers counted_targets if some
  // targets of the step do not count. The sequences must follow those of the previous call.
  virtual void read(Batch& batch) = 0;
  // Passes over sequences of a step, which follow those of the previous call, as if they had been read: `after` is then
  // the start of the next one. Sources whose batches depend on the step only have nothing to do.
  virtual void skip([[maybe_unused]] uint32_t step, [[maybe_unused]] const Range& sequences,
                    [[maybe_unused]] StreamPosition& after) {}
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // What its batches contain.
  virtual std::vector<ColumnSpec> columns() const = 0;

  // A reader that starts at `position`, the `after` of the previous batch. The source must outlive the reader.
  virtual std::unique_ptr<BatchReader> reader(const StreamPosition& position) const = 0;

 protected:
  // Tokens and targets of text.
  static std::vector<ColumnSpec> text_columns(size_t context) {
    return {{kTokensColumn, ColumnType::kInt32, context}, {kTargetsColumn, ColumnType::kInt32, context}};
  }

  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource& operator=(const BatchSource&) = default;
};

}  // namespace quern::data
