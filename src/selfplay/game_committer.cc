#include "selfplay/game_committer.h"

#include <utility>

namespace quern::selfplay {

GameCommitter::GameCommitter(uint64_t first, size_t window, Commit commit)
    : ring_(window), commit_(std::move(commit)), next_(first) {}

void GameCommitter::finish(GameRecord& record) {
  Cell& cell = ring_[record.number % ring_.size()];
  std::swap(cell.record, record);
  cell.ready.store(true, std::memory_order_seq_cst);
  commit_ready_games();
}

void GameCommitter::permit(uint64_t end) {
  uint64_t before = permitted_.load(std::memory_order_relaxed);
  while (before < end && !permitted_.compare_exchange_weak(before, end, std::memory_order_seq_cst)) {
  }
  commit_ready_games();
}

bool GameCommitter::next_is_ready() const noexcept {
  const uint64_t next = next_.load(std::memory_order_seq_cst);
  return next < permitted_.load(std::memory_order_seq_cst) &&
         ring_[next % ring_.size()].ready.load(std::memory_order_seq_cst);
}

// After an exception busy_ stays true.
void GameCommitter::commit_ready_games() {
  while (next_is_ready()) {
    if (busy_.exchange(true, std::memory_order_seq_cst)) return;
    while (next_is_ready()) {
      const uint64_t next = next_.load(std::memory_order_relaxed);  // changed only here
      Cell& cell = ring_[next % ring_.size()];
      commit_(cell.record);
      cell.ready.store(false, std::memory_order_relaxed);
      next_.store(next + 1, std::memory_order_seq_cst);  // releases the cell to the game one lap later
    }
    busy_.store(false, std::memory_order_seq_cst);
  }
}

}  // namespace quern::selfplay
