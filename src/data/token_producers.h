// Threads that produce pieces of tokens ahead of a consumer that takes them in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "core/signal.h"

namespace quern::data {

// Each thread takes the next unclaimed piece, so the output does not depend on the number of threads. They run ahead by
// at most two pieces each plus two more, then sleep. Lock-free. One consumer.
class TokenProducers {
 public:
  // Sets `tokens` to the tokens of a piece. Called by the threads, once for each piece from `first` on.
  using Produce = std::function<void(uint64_t piece, std::vector<int32_t>& tokens)>;

  TokenProducers(size_t threads, uint64_t first, Produce produce);
  TokenProducers(const TokenProducers&) = delete;
  TokenProducers& operator=(const TokenProducers&) = delete;
  ~TokenProducers();

  // Waits for the tokens of the next piece, which are valid until the next call. Rethrows an exception for this piece.
  std::span<const int32_t> next();

 private:
  // Piece first + i is in slot i % slots. `turn` is 2 r while the slot waits for its piece of round r = i / slots, and
  // 2 r + 1 while it contains it.
  struct Slot {
    Signal turn;
    std::vector<int32_t> tokens;
    std::exception_ptr failure;
  };

  void produce_all();
  void stop() noexcept;
  Slot& slot(uint64_t i) { return *slots_[i % slots_.size()]; }
  uint32_t round(uint64_t i) const { return static_cast<uint32_t>(i / slots_.size()); }
  bool await(Slot& slot, uint32_t turn);

  uint64_t first_;
  Produce produce_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<uint64_t> taken_{0};  // by the threads
  uint64_t next_ = 0;               // for the consumer
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

}  // namespace quern::data
