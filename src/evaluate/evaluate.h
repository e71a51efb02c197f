// The loss of a model on held-out text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/buffer_pool.h"
#include "core/range.h"
#include "data/evaluation_windows.h"
#include "data/tokenizer.h"
#include "nn/model.h"

namespace quern::train {

struct Evaluation {
  double loss = 0;                        // nats per token
  uint64_t tokens = 0;                    // predicted
  std::optional<double> bytes_per_token;  // nullopt without a tokenizer

  double perplexity() const;
  std::optional<double> bits_per_byte() const;  // comparable across tokenizers; nullopt without one
};

// The micro-batches of an evaluation, computed without dropout. Each window has its own loss, so any team can compute
// any task in any order without affecting the result.
class LossTasks {
 public:
  // A task has `micro_batch_size` windows, which must fit the teams' workspaces. Memory comes from `pool`, since its
  // size depends on the windows. The arguments must outlive this object; `tokenizer` may be null. Of `own`, the range
  // of windows to compute here, the tasks are made; the other losses are set from outside.
  LossTasks(const nn::Model& model, const data::EvaluationWindows& windows, size_t micro_batch_size, size_t teams,
            const data::Tokenizer* tokenizer, BufferPool& pool);
  LossTasks(const nn::Model& model, const data::EvaluationWindows& windows, const Range& own, size_t micro_batch_size,
            size_t teams, const data::Tokenizer* tokenizer, BufferPool& pool);

  size_t count() const { return count_; }
  // Called by every member of the team.
  void run(uint32_t task, size_t team, nn::Workspace& work, const Member& member);
  std::span<double> losses() { return losses_; }
  // Call after all tasks are done.
  Evaluation result() const;

 private:
  const nn::Model& model_;
  const data::EvaluationWindows& windows_;
  const data::Tokenizer* tokenizer_;
  Range own_;
  size_t context_, micro_batch_size_, count_, columns_;
  PooledBuffer rented_losses_, rented_bytes_, rented_tokens_;
  std::span<double> losses_;   // per window
  std::span<uint64_t> bytes_;  // text bytes per task
  std::span<int32_t> tokens_;  // inputs, targets and perhaps positions of one task per team
};

// Evaluates all windows with its own threads; the result does not depend on their number. `tokenizer` may be null.
Evaluation evaluate(const nn::Model& model, const data::EvaluationWindows& windows, size_t threads,
                    const data::Tokenizer* tokenizer);

}  // namespace quern::train
