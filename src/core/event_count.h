// Lets a thread sleep until another thread changes a condition, without a mutex, and at no cost to the other thread
// while no thread sleeps.
#pragma once

#include <atomic>

#include "core/cache_line.h"

namespace quern {

// One side waits for a condition, the other makes it true and then wakes the sleepers:
//
//   waiter:  events.sleep_unless([&] { return condition.load(seq_cst); });   then checks again
//   waker:   condition.<read-modify-write>(seq_cst);  events.wake_one();
//
// No wake-up is lost. All of these operations are seq_cst, so every thread agrees on a single order of them:
//
//   waiter                                              waker
//   S1 sleepers += 1                                    W1 change the condition to true
//   S2 read epoch                                       W2 read sleepers
//   S3 read the condition; if false, sleep while        W3 if there are any: epoch += 1, wake
//      the epoch is still that of S2
//
// - W2 before S1: then W1 < W2 < S1 < S3, so S3 reads true and the waiter does not sleep.
// - S1 before W2: the waker sees a sleeper and reaches W3.
//     W3 before S2: W1 < W3 < S2 < S3, and again S3 reads true.
//     S2 before W3: the epoch is no longer the one that S2 read, so the sleep ends or does not begin: the kernel
//     compares the epoch and queues the sleeper in one step.
// W1 must itself be seq_cst: a release store could still be in the store buffer when W2 reads. That is why the
// condition must be one that the waker changes with an atomic read-modify-write, which on x86 is a full barrier anyway;
// W2 is then a plain load of a line that no thread writes while no thread sleeps. (For the epoch to be mistaken,
// exactly 2^32 wakes would have to occur between S2 and the sleep.)
//
// Both words are ints because a futex is an int: libstdc++ passes std::atomic<int>::wait to the kernel directly, and
// sends other sizes through a table of shared proxies, where wake_one would have to wake all waiters.
class alignas(kCacheLine) EventCount {
 public:
  // Sleeps until a wake that follows the call; returns immediately if ready() holds. May return early, so the caller
  // must check again in a loop. ready() must read with seq_cst what the waker writes, and must not throw.
  template <typename Ready>
  void sleep_unless(Ready ready) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);            // S1
    const int epoch = epoch_.load(std::memory_order_seq_cst);     // S2
    if (!ready()) epoch_.wait(epoch, std::memory_order_acquire);  // S3; the acquire pairs with W3
    sleepers_.fetch_sub(1, std::memory_order_relaxed);            // saves wakers a call; orders nothing
  }

  // Wakes one sleeper, if there is one: for a change that a single waiter can consume. One load while no thread sleeps.
  void wake_one() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;  // W2
    epoch_.fetch_add(1, std::memory_order_seq_cst);              // W3
    epoch_.notify_one();
  }

  // Wakes all sleepers: for a change that concerns all of them.
  void wake_all() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_all();
  }

 private:
  std::atomic<int> sleepers_{0};  // counted before they check for the last time
  std::atomic<int> epoch_{0};     // number of wakes so far; the futex
};
static_assert(sizeof(EventCount) == kCacheLine);

}  // namespace quern
