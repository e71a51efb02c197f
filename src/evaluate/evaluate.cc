#include "evaluate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>
#include <numeric>

#include "parallel/step_cut.h"
#include "parallel/workers.h"

namespace quern::train {
namespace {

uint64_t bytes_of(const data::Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  uint64_t bytes = 0;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= tokenizer.vocabulary_size()) continue;  // does not count, or a padding row of the table
    // These separate documents and are not part of the text.
    if (tokenizer.end_of_text() == token || tokenizer.begin_of_text() == token) continue;
    bytes += tokenizer.bytes_of(token).size();
  }
  return bytes;
}

}  // namespace

LossTasks::LossTasks(const nn::Model& model, const data::EvaluationWindows& windows, size_t micro_batch_size,
                     size_t teams, const data::Tokenizer* tokenizer, BufferPool& pool)
    : LossTasks(model, windows, {0, windows.windows()}, micro_batch_size, teams, tokenizer, pool) {}

LossTasks::LossTasks(const nn::Model& model, const data::EvaluationWindows& windows, const Range& own,
                     size_t micro_batch_size, size_t teams, const data::Tokenizer* tokenizer, BufferPool& pool)
    : model_(model),
      windows_(windows),
      tokenizer_(tokenizer),
      own_(own),
      context_(model.activations().context),
      micro_batch_size_(micro_batch_size),
      count_((own.size() + micro_batch_size - 1) / micro_batch_size),
      columns_(windows.has_documents() ? 3 : 2),
      rented_losses_(pool.rent(2 * windows.windows())),
      rented_bytes_(pool.rent(2 * count_, Fill::kZero)),
      rented_tokens_(pool.rent(columns_ * teams * micro_batch_size * context_)),
      losses_(rented_losses_.as<double>()),
      bytes_(rented_bytes_.as<uint64_t>()),
      tokens_(rented_tokens_.as<int32_t>()) {}

void LossTasks::run(uint32_t task, size_t team, nn::Workspace& work, const Member& member) {
  const uint64_t first = own_.begin + task * micro_batch_size_;
  const size_t n = std::min<uint64_t>(micro_batch_size_, own_.end - first);
  const size_t column = micro_batch_size_ * context_;
  int32_t *inputs = tokens_.data() + columns_ * team * column, *targets = inputs + column;
  int32_t* positions = columns_ == 3 ? targets + column : nullptr;
  if (member.leads()) windows_.fill(first, static_cast<uint32_t>(n), {inputs, targets, positions});
  member.meet();
  ColumnRefs columns = {{kTokensColumn, inputs}, {kTargetsColumn, targets}};
  if (positions != nullptr) columns.add({kPositionsColumn, positions});
  model_.loss({.columns = columns, .sequences = n, .T = context_}, work, member);
  if (!member.leads()) return;
  for (size_t s = 0; s < n; ++s) losses_[first + s] = work.loss_of_sequence(s, context_);
  if (tokenizer_ != nullptr) bytes_[task] = bytes_of(*tokenizer_, {targets, n * context_});
}

Evaluation LossTasks::result() const {
  const uint64_t tokens = windows_.targets();
  const double n = static_cast<double>(tokens);
  Evaluation evaluation{
      .loss = std::accumulate(losses_.begin(), losses_.end(), 0.0) / n, .tokens = tokens, .bytes_per_token = {}};
  const uint64_t bytes = std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
  if (bytes > 0) evaluation.bytes_per_token = static_cast<double>(bytes) / n;
  return evaluation;
}

double Evaluation::perplexity() const { return std::exp(loss); }

std::optional<double> Evaluation::bits_per_byte() const {
  if (!bytes_per_token) return std::nullopt;
  return loss / std::numbers::ln2 / *bytes_per_token;
}

Evaluation evaluate(const nn::Model& model, const data::EvaluationWindows& windows, size_t threads,
                    const data::Tokenizer* tokenizer) {
  const StepCut cut = cut_step(windows.windows(), model.activations().context, threads);
  BufferPool pool;
  LossTasks tasks(model, windows, cut.micro_batch_size, cut.teams, tokenizer, pool);
  std::deque<nn::Workspace> work;
  for (size_t team = 0; team < cut.teams; ++team) {
    work.emplace_back(model.activations(), nn::WorkspaceOptions{.sequences = cut.micro_batch_size,
                                                                .members = members_of(team, cut.teams, threads)});
  }
  run_tasks(
      {.threads = threads, .teams = cut.teams}, TaskKind::kLoss, tasks.count(),
      [&](const Task& task, size_t team, const Member& member) { tasks.run(task.index, team, work[team], member); });
  return tasks.result();
}

}  // namespace quern::train
