// What one thread writes while it is profiled; quern/profile.h is what others see of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cache_line.h"
#include "quern/profile.h"

namespace quern {

inline int64_t nanoseconds_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The name and unit of region `id`.
const char* region_name(size_t id);
Unit region_unit(size_t id);

// A number that one thread changes and any may read.
template <typename T>
class Shared {
 public:
  explicit Shared(T value = 0) : value_(value) {}
  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(T value) noexcept { set(get() + value); }

 private:
  std::atomic<T> value_;
};

// A call of a region, those inside it included.
struct ProfileEvent {
  int64_t begin, end;  // nanoseconds
  uint32_t region;
  int32_t layer;  // Timed::kNoLayer for none
  uint32_t step, micro_batch;
};
static_assert(sizeof(ProfileEvent) == 32);

// Where the calls of a thread belong. Steps count from 1; kNone: to none.
struct ProfilePlace {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t step = kNone, micro_batch = kNone;
};

class alignas(kCacheLine) ThreadProfile {
 public:
  explicit ThreadProfile(size_t events) : events_(events) {}

  struct Totals {
    Shared<uint64_t> count;
    Shared<int64_t> total, min{INT64_MAX}, max;
    Shared<double> work;
  };
  const Totals& totals(size_t region) const { return totals_[region]; }

  // By the thread itself. A call from `begin` to `end`, of which `counted` nanoseconds are its own.
  void add(const ProfileEvent& call, int64_t counted, double work) noexcept {
    Totals& totals = totals_[call.region];
    totals.count.add(1);
    totals.total.add(counted);
    if (counted < totals.min.get()) totals.min.set(counted);
    if (counted > totals.max.get()) totals.max.set(counted);
    totals.work.add(work);
    if (!events_.empty()) keep(call);
  }

  // A wait between steps or tasks that began at `begin` and is over now, and of which this much counts.
  void add_wait(const Region& region, int64_t begin, int64_t counted) noexcept {
    constexpr uint32_t kNone = ProfilePlace::kNone;
    add({begin, nanoseconds_now(), static_cast<uint32_t>(region.id()), Timed::kNoLayer, kNone, kNone}, counted, 0);
  }

  ProfileEvent event(int64_t begin, int64_t end, uint32_t region, int32_t layer) const noexcept {
    return {begin, end, region, layer, place_.step, place_.micro_batch};
  }

  void set_place(const ProfilePlace& place) noexcept { place_ = place; }

  // Once the thread has ended or is known to write no more: the newest calls, by their end.
  std::vector<ProfileEvent> events() const;
  // When the last of those ended that are no longer there; 0 when all are.
  int64_t forgotten_until() const { return forgotten_until_; }

 private:
  friend class Timed;

  void keep(const ProfileEvent& call) noexcept {
    ProfileEvent& slot = events_[kept_ % events_.size()];
    if (kept_ >= events_.size()) forgotten_until_ = slot.end;
    slot = call;
    ++kept_;
  }

  Timed* open_ = nullptr;  // the innermost
  ProfilePlace place_;
  Totals totals_[kMaxRegions];
  std::vector<ProfileEvent> events_;  // a ring
  size_t kept_ = 0;
  int64_t forgotten_until_ = 0;
};

// Says where this thread's next calls belong, if it is profiled.
inline void set_profile_place(const ProfilePlace& place) noexcept {
  if (detail::current_profile != nullptr) [[unlikely]]
    detail::current_profile->set_place(place);
}

}  // namespace quern
