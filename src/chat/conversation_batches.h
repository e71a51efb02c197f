// Batches of conversations: rows of `context` positions, each with one or several sequences and padding.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "chat/marked_tokens.h"
#include "chat/packing.h"
#include "data/batch_reader.h"
#include "data/evaluation_windows.h"

namespace quern::chat {

// Where the columns of some rows go: (rows, context) each.
struct RowColumns {
  int32_t* tokens;
  int32_t* targets;    // the next token of the same sequence if it is trained, otherwise kNoTarget
  int32_t* positions;  // within the sequence; from 0 again for every sequence and for the padding

  RowColumns at(size_t offset) const { return {tokens + offset, targets + offset, positions + offset}; }
};

// Sequences arranged in rows. Immutable and thread-safe.
class ConversationRows {
 public:
  // `pack`: as many sequences per row as fit (packing.h); otherwise one. Every sequence must have 2 ... context + 1
  // ids, and there must be one; Error otherwise.
  ConversationRows(std::vector<MarkedTokens> sequences, uint32_t context, bool pack);

  uint32_t context() const { return context_; }
  size_t size() const { return plan_.size(); }
  const RowPlan& plan() const { return plan_; }
  uint32_t targets(size_t row) const { return targets_[row]; }  // that count for the loss

  // Writes one row. Padding has token 0 and no targets. No allocation.
  void fill(size_t row, const RowColumns& out) const;
  // Writes a row that is all padding.
  void fill_empty(const RowColumns& out) const;

 private:
  uint32_t context_;
  std::vector<MarkedTokens> sequences_;
  RowPlan plan_;
  std::vector<uint32_t> targets_;  // by row
};

struct ConversationBatchOptions {
  uint64_t seed = 0;
  uint32_t rows_per_step = 0;  // of an optimizer step: all accumulation rounds and ranks together
  uint64_t epochs = 0;         // after these, rows are empty; 0 for no limit
  // The first step and the number of rows drawn before it, from which the number before any later step follows.
  uint32_t first_step = 0;
  uint64_t first_sequence = 0;
};

// Row i of step s is a pure function of (seed, s, i): the rows are visited in a pseudo-random order, a new one for
// every epoch, without repetition within it. `rows` must outlive this object.
class ConversationBatches : public data::BatchSource {
 public:
  ConversationBatches(const ConversationRows& rows, const ConversationBatchOptions& options);

  // Rows first ... first + count - 1 of the step; first + count <= rows_per_step. Thread-safe; does not allocate.
  void fill(uint32_t step, uint32_t first, uint32_t count, const RowColumns& out) const;

  // Targets of a whole step that count for the loss.
  uint64_t step_targets(uint32_t step) const;

  // Steps to see every row once, rounded up, and to see it `epochs` times (0 if that is not limited).
  uint64_t steps_per_epoch() const;
  uint64_t steps() const;

  // Tokens, targets and positions.
  std::vector<ColumnSpec> columns() const override;
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override;

 private:
  // Row `index` of the step; rows_.size() after the last epoch.
  size_t row_at(uint32_t step, uint32_t index) const;

  const ConversationRows& rows_;
  ConversationBatchOptions options_;
};

// Fixed rows in order, the same at every evaluation. `rows` must outlive this object.
class ValidationRows final : public data::EvaluationWindows {
 public:
  // Uses at most `max_rows` rows.
  explicit ValidationRows(const ConversationRows& rows, uint64_t max_rows = UINT64_MAX);

  uint64_t windows() const override { return count_; }
  uint64_t targets() const override;
  bool has_documents() const override { return true; }

  void fill(uint64_t first, uint32_t count, const data::WindowColumns& out) const override;

 private:
  const ConversationRows& rows_;
  uint64_t count_;
};

}  // namespace quern::chat
