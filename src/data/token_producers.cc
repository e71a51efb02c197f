#include "data/token_producers.h"

#include <utility>

#include "core/error.h"

namespace quern::data {

TokenProducers::TokenProducers(size_t threads, Take take, Produce produce)
    : take_(std::move(take)), produce_(std::move(produce)) {
  for (size_t i = 0; i < 2 * threads + 2; ++i) slots_.push_back(std::make_unique<Slot>());
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { produce_all(); });
  } catch (const std::exception& error) {
    stop();
    throw Error("[data] expected {} threads to read the text, found that the system provides {}: {}", threads,
                threads_.size(), error.what());
  }
}

TokenProducers::~TokenProducers() { stop(); }

// A waiting thread sees the number of its slot change, and then that the producers were stopped.
void TokenProducers::stop() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  for (const std::unique_ptr<Slot>& slot : slots_) slot->turn.set(UINT32_MAX);
  for (std::thread& thread : threads_) thread.join();
}

// Returns false if the producers were stopped.
bool TokenProducers::await(Slot& slot, uint32_t turn) {
  for (;;) {
    const uint32_t found = slot.turn.value();
    if (stopped_.load(std::memory_order_seq_cst)) return false;
    if (found == turn) return true;
    slot.turn.await_change(found);
  }
}

// Waits for a free slot and reads its piece. Slots become free in order, so waiting under the lock delays nobody.
// Returns false if the producers were stopped.
bool TokenProducers::take_next(uint64_t& i) {
  const std::lock_guard lock(taking_);
  i = taken_++;
  Slot& mine = slot(i);
  if (!await(mine, 2 * round(i))) return false;
  try {
    take_(mine.piece);
  } catch (...) {
    mine.failure = std::current_exception();
  }
  return true;
}

void TokenProducers::produce_all() {
  for (uint64_t i = 0; take_next(i);) {
    Slot& mine = slot(i);
    try {
      if (mine.failure == nullptr) produce_(mine.piece);
    } catch (...) {
      mine.failure = std::current_exception();
    }
    mine.turn.set(2 * round(i) + 1);
  }
}

const TokenPiece& TokenProducers::next() {
  if (next_ > 0) slot(next_ - 1).turn.set(2 * round(next_ - 1) + 2);
  Slot& mine = slot(next_);
  await(mine, 2 * round(next_) + 1);
  ++next_;
  if (mine.failure != nullptr) std::rethrow_exception(std::exchange(mine.failure, nullptr));
  return mine.piece;
}

}  // namespace quern::data
