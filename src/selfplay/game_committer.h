// Puts finished games into the replay buffer in the order of their numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/cache_line.h"
#include "selfplay/game_record.h"

namespace quern::selfplay {

// Games end in any order, and wait in a ring until all games with lower numbers are committed. The thread that brings
// the game that is next commits it and all that are ready behind it; the others leave at once. No lock, and no
// allocation once the records of the ring have grown.
//
// Only one thread commits at a time: the one that changed busy_ to true. A thread that finds it true leaves, relying on
// the other to see its game. That one reads the ring again after it changed busy_ to false. All of it is seq_cst: if
// the game was not there at that read, the thread that brings it comes later, and finds busy_ false.
class GameCommitter {
 public:
  // Called with each record in order, by one thread at a time. An exception reaches the caller of finish() or permit();
  // nothing is committed after that.
  using Commit = std::function<void(const GameRecord&)>;

  // `first`: the game to be committed first. `window`: how many games from the next one on may be in progress or wait.
  GameCommitter(uint64_t first, size_t window, Commit commit);

  // Whether this game may be started now. Once true for a game, always true.
  bool may_start(uint64_t number) const noexcept { return number - committed() < ring_.size(); }

  // Takes the record of a game for which may_start() holds; leaves another one, with old contents, in its place. Any
  // thread.
  void finish(GameRecord& record);

  // Allows games below `end` to be committed. Any thread; the highest call counts.
  void permit(uint64_t end);

  // All games below this number are in the buffer.
  uint64_t committed() const noexcept { return next_.load(std::memory_order_acquire); }

 private:
  struct alignas(kCacheLine) Cell {
    std::atomic<bool> ready{false};
    GameRecord record;
  };

  bool next_is_ready() const noexcept;
  void commit_ready_games();

  std::vector<Cell> ring_;  // game n is in cell n % size
  Commit commit_;
  alignas(kCacheLine) std::atomic<uint64_t> next_;
  std::atomic<uint64_t> permitted_{0};
  std::atomic<bool> busy_{false};
};

}  // namespace quern::selfplay
