// Training batches drawn from a replay buffer of self-play rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_reader.h"
#include "games/game.h"
#include "learn/read_ahead.h"
#include "replay/buffer.h"

namespace quern::learn {

struct RowOptions {
  uint64_t seed = 1;
  bool symmetries = true;            // of the game: each row is seen under a random one
  bool checked = false;              // Error for a row that cannot be trained on, for a buffer that others fill
  const ReadAhead* ahead = nullptr;  // bounds how far a reader is ahead; null: it is not
};

// Sample s of step t is a function of (seed, t, s) and the rows of the buffer, oldest first: so if the buffer does not
// change, neither does a batch, whoever reads it and when. Rows are drawn uniformly, with replacement, and counted as
// sampled. The buffer's rate limit is the caller's business: a reader does not wait.
class RowBatches final : public data::BatchSource {
 public:
  // The game and the buffer, which must have rows of the game, must outlive the source.
  RowBatches(const games::GameShape& game, replay::ReplayBuffer& buffer, RowOptions options);

  std::vector<ColumnSpec> columns() const override;
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override;

 private:
  class Reader;

  const games::GameShape& game_;
  replay::ReplayBuffer& buffer_;
  RowOptions options_;
};

}  // namespace quern::learn
