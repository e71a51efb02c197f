#include "chat/conversation_batches.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/permutation.h"

namespace quern::chat {
namespace {

constexpr uint16_t kOrderLayer = 5;  // distinguishes uses of Purpose::kShuffle; data/batch_source.cc has the others

std::vector<uint32_t> checked_lengths(const std::vector<MarkedTokens>& sequences, uint32_t context) {
  if (sequences.empty()) throw Error("[data] expected conversations to train on, found none");
  std::vector<uint32_t> lengths;
  for (const MarkedTokens& sequence : sequences) {
    if (sequence.ids.size() < 2 || sequence.ids.size() - 1 > context) {
      throw Error("[data] expected sequences of 2 to {} tokens, found one of {}", uint64_t{context} + 1,
                  sequence.ids.size());
    }
    lengths.push_back(static_cast<uint32_t>(sequence.ids.size() - 1));
  }
  return lengths;
}

RowPlan plan_rows(const std::vector<MarkedTokens>& sequences, uint32_t context, bool pack) {
  const std::vector<uint32_t> lengths = checked_lengths(sequences, context);
  return pack ? pack_rows(lengths, context) : one_per_row(lengths.size());
}

size_t write_sequence(const MarkedTokens& sequence, const RowColumns& out) {
  const size_t length = sequence.ids.size() - 1;
  for (size_t t = 0; t < length; ++t) {
    out.tokens[t] = sequence.ids[t];
    out.targets[t] = sequence.trained[t + 1] != 0 ? sequence.ids[t + 1] : kNoTarget;
    out.positions[t] = static_cast<int32_t>(t);
  }
  return length;
}

void write_padding(size_t length, const RowColumns& out) {
  std::fill_n(out.tokens, length, 0);
  std::fill_n(out.targets, length, kNoTarget);
  std::iota(out.positions, out.positions + length, 0);
}

// Counts the targets of a step once, not for each of its micro-batches.
class Reader final : public data::BatchReader {
 public:
  explicit Reader(const ConversationBatches& source) : source_(source) {}

  void read(data::Batch& batch) override {
    source_.fill(batch.step, batch.first, batch.sequences,
                 {batch.columns.ints(kTokensColumn).data(), batch.columns.ints(kTargetsColumn).data(),
                  batch.columns.ints(kPositionsColumn).data()});
    if (!has_step_ || step_ != batch.step) targets_ = source_.step_targets(batch.step);
    has_step_ = true;
    step_ = batch.step;
    batch.counted_targets = targets_;
  }

 private:
  const ConversationBatches& source_;
  bool has_step_ = false;
  uint32_t step_ = 0;
  uint64_t targets_ = 0;
};

}  // namespace

ConversationRows::ConversationRows(std::vector<MarkedTokens> sequences, uint32_t context, bool pack)
    : context_(context), sequences_(std::move(sequences)), plan_(plan_rows(sequences_, context, pack)) {
  targets_.reserve(plan_.size());
  for (size_t row = 0; row < plan_.size(); ++row) {
    uint64_t targets = 0;
    for (const uint32_t sequence : plan_.row(row)) targets += sequences_[sequence].targets();
    targets_.push_back(static_cast<uint32_t>(targets));
  }
}

void ConversationRows::fill(size_t row, const RowColumns& out) const {
  size_t used = 0;
  for (const uint32_t sequence : plan_.row(row)) used += write_sequence(sequences_[sequence], out.at(used));
  write_padding(context_ - used, out.at(used));
}

void ConversationRows::fill_empty(const RowColumns& out) const { write_padding(context_, out); }

ConversationBatches::ConversationBatches(const ConversationRows& rows, const ConversationBatchOptions& options)
    : rows_(rows), options_(options) {
  if (options_.rows_per_step == 0) throw Error("[data] expected at least 1 sequence per step, found 0");
}

void ConversationBatches::fill(uint32_t step, uint32_t first, uint32_t count, const RowColumns& out) const {
  assert(first <= options_.rows_per_step && count <= options_.rows_per_step - first);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t row = row_at(step, first + i);
    const RowColumns columns = out.at(size_t{i} * rows_.context());
    row < rows_.size() ? rows_.fill(row, columns) : rows_.fill_empty(columns);
  }
}

uint64_t ConversationBatches::step_targets(uint32_t step) const {
  uint64_t targets = 0;
  for (uint32_t i = 0; i < options_.rows_per_step; ++i) {
    const size_t row = row_at(step, i);
    if (row < rows_.size()) targets += rows_.targets(row);
  }
  return targets;
}

size_t ConversationBatches::row_at(uint32_t step, uint32_t index) const {
  assert(step >= options_.first_step);
  const uint64_t steps = step - options_.first_step;
  const uint64_t drawn = options_.first_sequence + steps * options_.rows_per_step + index;
  const uint64_t epoch = drawn / rows_.size();
  if (options_.epochs > 0 && epoch >= options_.epochs) return rows_.size();
  const Permutation order(rows_.size(), {.seed = options_.seed,
                                         .purpose = Purpose::kShuffle,
                                         .layer = kOrderLayer,
                                         .step = static_cast<uint32_t>(epoch)});
  return order(drawn % rows_.size());
}

uint64_t ConversationBatches::steps_per_epoch() const {
  return (rows_.size() + options_.rows_per_step - 1) / options_.rows_per_step;
}

uint64_t ConversationBatches::steps() const {
  return (options_.epochs * rows_.size() + options_.rows_per_step - 1) / options_.rows_per_step;
}

std::vector<ColumnSpec> ConversationBatches::columns() const {
  std::vector<ColumnSpec> columns = text_columns(rows_.context());
  columns.push_back({kPositionsColumn, ColumnType::kInt32, rows_.context()});
  return columns;
}

std::unique_ptr<data::BatchReader> ConversationBatches::reader(const data::StreamPosition&) const {
  return std::make_unique<Reader>(*this);
}

ValidationRows::ValidationRows(const ConversationRows& rows, uint64_t max_rows)
    : rows_(rows), count_(std::min<uint64_t>(rows.size(), max_rows)) {}

uint64_t ValidationRows::targets() const {
  uint64_t targets = 0;
  for (uint64_t row = 0; row < count_; ++row) targets += rows_.targets(row);
  return targets;
}

void ValidationRows::fill(uint64_t first, uint32_t count, const data::WindowColumns& out) const {
  assert(first <= count_ && count <= count_ - first);
  const RowColumns columns{out.tokens, out.targets, out.positions};
  for (uint32_t i = 0; i < count; ++i) rows_.fill(first + i, columns.at(size_t{i} * rows_.context()));
}

}  // namespace quern::chat
