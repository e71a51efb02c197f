// Threads of one process that play ranks: for tests, and to try a number of ranks on one machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "dist/communicator.h"

namespace quern::dist {

// A send posts a record to the receiver's inbox, a lock-free stack; the receiver copies the data and marks the record.
class ThreadRanks {
 public:
  explicit ThreadRanks(size_t ranks);
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  ~ThreadRanks();

  Communicator& operator[](size_t rank);

 private:
  class Rank;

  std::atomic<bool> aborted_{false};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace quern::dist
