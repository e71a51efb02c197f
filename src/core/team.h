// Threads that compute one task together, each a part of every operation.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cache_line.h"
#include "core/clock.h"
#include "core/range.h"
#include "core/regions.h"
#include "core/signal.h"

namespace quern {

inline constexpr size_t kMaxThreads = 64;  // guarantee I1 is tested up to this number

// Thrown in a thread that waits for others, when the wait cannot end because one of them failed.
struct Stopped {};

// Time that threads spent waiting, in seconds.
struct WaitTimes {
  double tickets = 0;  // for the turn to add to a gradient
  double team = 0;     // for the other members of its team
  double queue = 0;    // for work

  WaitTimes operator-(const WaitTimes& other) const {
    return {tickets - other.tickets, team - other.team, queue - other.queue};
  }
  WaitTimes operator+(const WaitTimes& other) const {
    return {tickets + other.tickets, team + other.team, queue + other.queue};
  }
  double sum() const { return tickets + team + queue; }
};

// A sum that one thread adds to and any thread may read.
class Seconds {
 public:
  void add(double seconds) noexcept {
    sum_.store(sum_.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);
  }
  double sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> sum_{0};
};

// WaitTimes of one thread. Other threads may read them at any time. A wait is counted when it is over, which may be
// after the thread it waited for has continued.
struct alignas(kCacheLine) WaitClock {
  Seconds tickets, team, queue;
};

// The barrier at which the members of a team synchronize between operations that read each other's results. A counter,
// no lock.
class Team {
 public:
  explicit Team(size_t size) : size_(static_cast<uint32_t>(size)) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t size() const noexcept { return size_; }

  // Returns when every member has called it as often as this one; everything they wrote before is then visible. Throws
  // Stopped after stop().
  void meet() {
    const uint32_t phase = phase_.value();
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);  // made visible by the next line
      phase_.add(1);
    } else {
      phase_.await_change(phase);
    }
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
  }

  // Ends all current and future waits.
  void stop() noexcept {
    stopped_.store(true, std::memory_order_seq_cst);
    phase_.add(1);
  }

 private:
  const uint32_t size_;
  std::atomic<bool> stopped_{false};
  alignas(kCacheLine) std::atomic<uint32_t> arrived_{0};
  Signal phase_;
};

// One thread of a team; by default a team of one.
struct Member {
  Team* team = nullptr;
  size_t index = 0;
  size_t size = 1;
  WaitClock* waits = nullptr;  // not measured when null

  bool leads() const { return index == 0; }
  bool last() const { return index + 1 == size; }

  void meet() const {
    if (size == 1) return;
    const Timed timed(kTeamWait);
    const double start = waits != nullptr ? seconds_now() : 0;
    team->meet();
    if (waits != nullptr) waits->team.add(seconds_now() - start);
  }

  // This member's part of n items: complete units, distributed evenly.
  Range part(size_t n, size_t unit = 1) const {
    const size_t units = (n + unit - 1) / unit;
    return {std::min(n, units * index / size * unit), std::min(n, units * (index + 1) / size * unit)};
  }
};

}  // namespace quern
