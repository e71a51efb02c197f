#include "evaluate/sequences.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "parallel/step_cut.h"
#include "parallel/workers.h"

namespace quern::train {
namespace {

void check(const nn::LanguageModel& model, const Sequences& sequences, size_t shortest, size_t longest) {
  assert(sequences.tokens.size() == sequences.count * sequences.T);
  if (sequences.T < shortest || sequences.T > longest) {
    throw Error("[model] tokens: expected sequences of {} to {} tokens, found {}", shortest, longest, sequences.T);
  }
  const size_t V = model.config().vocabulary;
  for (size_t i = 0; i < sequences.tokens.size(); ++i) {
    const int32_t token = sequences.tokens[i];
    if (token >= 0 && static_cast<size_t>(token) < V) continue;
    throw Error("[model] tokens: expected ids of 0 to {}, found {} at position {} of sequence {}", V - 1, token,
                i % sequences.T, i / sequences.T);
  }
}

// Sequences first ... first + count, computed by every member of a team.
struct Part {
  size_t first, count;
  nn::Workspace& work;
  const Member& member;
};

// Computes `count` sequences of T positions in parts, in any order.
template <typename Compute>
void compute_in_parts(const nn::LanguageModel& model, size_t count, size_t T, size_t threads, const Compute& compute) {
  const StepCut cut = cut_step(count, T, threads);
  std::deque<nn::Workspace> work;
  for (size_t team = 0; team < cut.teams; ++team) {
    work.emplace_back(model.activations(),
                      nn::WorkspaceOptions{.sequences = cut.micro_batch_size,
                                           .context = T,  // allocates for the actual length, not for the model's
                                           .members = members_of(team, cut.teams, threads)});
  }
  run_tasks({.threads = threads, .teams = cut.teams}, TaskKind::kLoss, cut.micro_batches,
            [&](const Task& task, size_t team, const Member& member) {
              const size_t first = task.index * cut.micro_batch_size;
              compute(Part{first, std::min(cut.micro_batch_size, count - first), work[team], member});
            });
}

}  // namespace

void compute_logits(const nn::LanguageModel& model, const Sequences& sequences, size_t threads, std::span<float> out) {
  check(model, sequences, 1, model.config().positions_limit());
  const size_t T = sequences.T, V = model.config().vocabulary;
  assert(out.size() == sequences.count * T * V);
  if (sequences.count == 0) return;
  compute_in_parts(model, sequences.count, T, threads, [&](const Part& part) {
    model.logits(
        {.columns = {{kTokensColumn, sequences.tokens.data() + part.first * T}}, .sequences = part.count, .T = T},
        out.data() + part.first * T * V, part.work, part.member);
  });
}

double compute_loss(const nn::LanguageModel& model, const Sequences& sequences, size_t threads) {
  if (sequences.count == 0) throw Error("[model] tokens: expected at least one sequence, found none");
  check(model, sequences, 2, model.config().positions_limit() + 1);
  const size_t T = sequences.T - 1;
  std::vector<int32_t> inputs, targets;
  inputs.reserve(sequences.count * T);
  targets.reserve(sequences.count * T);
  for (size_t s = 0; s < sequences.count; ++s) {
    const auto begin = sequences.tokens.begin() + static_cast<ptrdiff_t>(s * sequences.T);
    inputs.insert(inputs.end(), begin, begin + static_cast<ptrdiff_t>(T));
    targets.insert(targets.end(), begin + 1, begin + 1 + static_cast<ptrdiff_t>(T));
  }
  std::vector<double> losses(
      sequences.count);  // added in order, so that the sum does not depend on how they were split
  compute_in_parts(model, sequences.count, T, threads, [&](const Part& part) {
    const size_t at = part.first * T;
    model.loss({.columns = {{kTokensColumn, inputs.data() + at}, {kTargetsColumn, targets.data() + at}},
                .sequences = part.count,
                .T = T},
               part.work, part.member);
    if (!part.member.leads()) return;
    for (size_t s = 0; s < part.count; ++s) losses[part.first + s] = part.work.loss_of_sequence(s, T);
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(targets.size());
}

}  // namespace quern::train
