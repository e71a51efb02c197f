// Threads that produce pieces of tokens ahead of a consumer that takes them in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/signal.h"
#include "data/text_pieces.h"

namespace quern::data {

struct TokenPiece {
  PieceIndex index;
  TextPieces::Raw raw;
  std::vector<int32_t> tokens;
};

// Each thread takes the next piece and tokenises it, so the output does not depend on the number of threads. They run
// ahead by at most two pieces each plus two more, then sleep. Taking is serial, as compressed text requires, and fast;
// tokenising, which takes most of the time, is parallel. One consumer, which does not use the lock.
class TokenProducers {
 public:
  using Take = std::function<void(TokenPiece& piece)>;     // reads the next piece; one call at a time, in order
  using Produce = std::function<void(TokenPiece& piece)>;  // sets the tokens of a piece; by all threads

  TokenProducers(size_t threads, Take take, Produce produce);
  TokenProducers(const TokenProducers&) = delete;
  TokenProducers& operator=(const TokenProducers&) = delete;
  ~TokenProducers();

  // Waits for the next piece, which is valid until the next call. Rethrows an exception for this piece.
  const TokenPiece& next();

 private:
  // Piece i is in slot i % slots. `turn` is 2 r while the slot waits for its piece of round r = i / slots, and
  // 2 r + 1 while it contains it.
  struct Slot {
    Signal turn;
    TokenPiece piece;
    std::exception_ptr failure;
  };

  void produce_all();
  bool take_next(uint64_t& i);
  void stop() noexcept;
  Slot& slot(uint64_t i) { return *slots_[i % slots_.size()]; }
  uint32_t round(uint64_t i) const { return static_cast<uint32_t>(i / slots_.size()); }
  bool await(Slot& slot, uint32_t turn);

  Take take_;
  Produce produce_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::mutex taking_;
  uint64_t taken_ = 0;  // by the threads, under taking_
  uint64_t next_ = 0;   // for the consumer
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

}  // namespace quern::data
