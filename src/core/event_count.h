// Sleeping until another thread has changed something, without a mutex, and at no cost to the other thread while nobody
// sleeps.
#pragma once

#include <atomic>

#include "core/cache_line.h"

namespace quern {

// One side waits for a condition, the other makes it true and then wakes:
//
//   waiter:  events.sleep_unless([&] { return condition.load(seq_cst); });   and looks again
//   waker:   condition.<read-modify-write>(seq_cst);  events.wake_one();
//
// No wake-up is lost. All of these are seq_cst and so lie in one order that every thread agrees on:
//
//   waiter                                              waker
//   S1 sleepers += 1                                    W1 change the condition to true
//   S2 read epoch                                       W2 read sleepers
//   S3 read the condition; if false, sleep while        W3 if there are any: epoch += 1, wake
//      the epoch is still the one of S2
//
// - W2 before S1: then W1 < W2 < S1 < S3, so S3 reads true and the waiter does not sleep.
// - S1 before W2: the waker sees a sleeper and comes to W3.
//     W3 before S2: W1 < W3 < S2 < S3, and again S3 reads true.
//     S2 before W3: the epoch is no longer what S2 read, so the sleep ends or does not begin: the kernel compares the
//     epoch and queues the sleeper in one step.
// W1 has to be seq_cst itself: a release store followed by W2 could be passed by it in the store buffer. That is why
// the condition must be one that the waker changes with an atomic read-modify-write, which on x86 is a full barrier
// anyway; W2 is then a plain load of a line that nobody writes while nobody sleeps. (Epoch would have to take exactly
// 2^32 wakes between S2 and the sleep to be mistaken.)
//
// Both words are ints because that is what a futex is: libstdc++ hands std::atomic<int>::wait to the kernel directly,
// and sends other sizes through a table of shared proxies, where wake_one would have to wake everyone.
class alignas(kCacheLine) EventCount {
 public:
  // Sleeps until a wake that follows the call, or returns at once if ready() holds. May return early, so the caller
  // looks again in a loop. ready() reads with seq_cst what the waker writes, and does not throw.
  template <typename Ready>
  void sleep_unless(Ready ready) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);            // S1
    const int epoch = epoch_.load(std::memory_order_seq_cst);     // S2
    if (!ready()) epoch_.wait(epoch, std::memory_order_acquire);  // S3; the acquire pairs with W3
    sleepers_.fetch_sub(1, std::memory_order_relaxed);            // spares wakers a call; orders nothing
  }

  // Wakes one sleeper, if there is one: for a change that one waiter can use up. One load when nobody sleeps.
  void wake_one() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;  // W2
    epoch_.fetch_add(1, std::memory_order_seq_cst);              // W3
    epoch_.notify_one();
  }

  // Wakes every sleeper: for a change that concerns all of them.
  void wake_all() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_all();
  }

 private:
  std::atomic<int> sleepers_{0};  // counted before they look for the last time
  std::atomic<int> epoch_{0};     // wakes so far; the futex
};
static_assert(sizeof(EventCount) == kCacheLine);

}  // namespace quern
