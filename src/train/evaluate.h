// The loss of a model on text that it does not learn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/buffer_pool.h"
#include "data/batch_source.h"
#include "data/tokenizer.h"
#include "nn/gpt.h"

namespace quern::train {

struct Evaluation {
  double loss = 0;                        // nats per token
  uint64_t tokens = 0;                    // that were predicted
  std::optional<double> bytes_per_token;  // of their text; none without a tokenizer

  double perplexity() const;
  std::optional<double> bits_per_byte() const;  // can be compared between tokenizers; none without one
};

// The micro-batches of an evaluation, to be computed in any order by any teams: dropout off, a loss for every window,
// so that the result depends on nothing else.
class LossTasks {
 public:
  // `at_once` windows a task, at most as many as the teams' workspaces take. Memory is rented from `pool`, for sizes
  // vary with the windows. The arguments must outlive this; `tokenizer` may be null.
  LossTasks(const Gpt& model, const data::ValidationBatches& windows, size_t at_once, size_t teams,
            const data::Tokenizer* tokenizer, BufferPool& pool);

  size_t count() const { return count_; }
  // By every member of the team.
  void run(uint32_t task, size_t team, Workspace& work, const Member& member);
  // After all of them.
  Evaluation result() const;

 private:
  const Gpt& model_;
  const data::ValidationBatches& windows_;
  const data::Tokenizer* tokenizer_;
  size_t T_, at_once_, count_;
  PooledBuffer rented_losses_, rented_bytes_, rented_tokens_;
  std::span<double> losses_;   // one a window
  std::span<uint64_t> bytes_;  // one a task: of its text
  std::span<int32_t> tokens_;  // inputs and targets of a task, for every team
};

// Over all windows by this many threads of its own; the result does not depend on how many. `tokenizer` may be null.
Evaluation evaluate(const Gpt& model, const data::ValidationBatches& windows, size_t threads,
                    const data::Tokenizer* tokenizer);

}  // namespace quern::train
