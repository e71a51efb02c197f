// What one thread records while it is profiled; quern/profile.h is the public view.
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

// A number that one thread changes and any thread may read.
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

// One call of a region, including nested regions.
struct ProfileEvent {
  int64_t begin, end;  // nanoseconds
  uint32_t region;
  int32_t layer;  // Timed::kNoLayer if none
  uint32_t step, micro_batch;
};
static_assert(sizeof(ProfileEvent) == 32);

// What the calls of a thread belong to. Steps count from 1; kNone means none.
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

  // Called by the thread itself. A call from `begin` to `end`, of which `counted` nanoseconds are its own.
  void add(const ProfileEvent& call, int64_t counted, double work) noexcept {
    Totals& totals = totals_[call.region];
    totals.count.add(1);
    totals.total.add(counted);
    if (counted < totals.min.get()) totals.min.set(counted);
    if (counted > totals.max.get()) totals.max.set(counted);
    totals.work.add(work);
    if (!events_.empty()) keep(call);
  }

  // A wait between steps or tasks that began at `begin` and ends now, of which `counted` nanoseconds count.
  void add_wait(const Region& region, int64_t begin, int64_t counted) noexcept {
    constexpr uint32_t kNone = ProfilePlace::kNone;
    add({begin, nanoseconds_now(), static_cast<uint32_t>(region.id()), Timed::kNoLayer, kNone, kNone}, counted, 0);
  }

  ProfileEvent event(int64_t begin, int64_t end, uint32_t region, int32_t layer) const noexcept {
    return {begin, end, region, layer, place_.step, place_.micro_batch};
  }

  void set_place(const ProfilePlace& place) noexcept { place_ = place; }

  // Call only when the thread has ended or no longer writes. Returns the newest calls, ordered by their end.
  std::vector<ProfileEvent> events() const;
  // End of the latest call that was overwritten; 0 if none was.
  int64_t forgotten_until() const { return forgotten_until_; }

 private:
  friend class Timed;

  void keep(const ProfileEvent& call) noexcept {
    ProfileEvent& slot = events_[kept_ % events_.size()];
    if (kept_ >= events_.size()) forgotten_until_ = slot.end;
    slot = call;
    ++kept_;
  }

  Timed* open_ = nullptr;  // the innermost open region
  ProfilePlace place_;
  Totals totals_[kMaxRegions];
  std::vector<ProfileEvent> events_;  // a ring buffer
  size_t kept_ = 0;
  int64_t forgotten_until_ = 0;
};

// While it exists, this thread is not profiled: what runs inside a region that tells enough by itself.
class Unprofiled {
 public:
  Unprofiled() noexcept : before_(detail::current_profile) { detail::current_profile = nullptr; }
  Unprofiled(const Unprofiled&) = delete;
  Unprofiled& operator=(const Unprofiled&) = delete;
  ~Unprofiled() { detail::current_profile = before_; }

 private:
  ThreadProfile* before_;
};

// Sets what this thread's next calls belong to, if it is profiled.
inline void set_profile_place(const ProfilePlace& place) noexcept {
  if (detail::current_profile != nullptr) [[unlikely]]
    detail::current_profile->set_place(place);
}

}  // namespace quern
