// Training batches drawn from a replay buffer of self-play rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "data/batch_reader.h"
#include "games/game.h"
#include "replay/buffer.h"

namespace quern::learn {

struct RowOptions {
  uint64_t seed = 1;
  bool symmetries = true;  // of the game: each row is seen under a random one
  // Called about every 50 ms while the buffer's rate limit makes the reader wait; an exception ends the wait, and the
  // step that needs the batch.
  std::function<void()> look = {};
};

// Sample s of step t is a function of (seed, t, s) and the rows of the buffer, oldest first: so if the buffer does not
// change, neither does a batch, whoever reads it and when. Rows are drawn uniformly, with replacement.
class RowBatches final : public data::BatchSource {
 public:
  // The game and the buffer, which must have rows of the game, must outlive the source.
  RowBatches(const games::Game& game, replay::ReplayBuffer& buffer, RowOptions options);

  std::vector<ColumnSpec> columns() const override;
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override;

 private:
  class Reader;

  const games::Game& game_;
  replay::ReplayBuffer& buffer_;
  RowOptions options_;
};

}  // namespace quern::learn
