// Per-thread timing of regions of a program, without locks: time and throughput of each region.
//
//   const quern::Region kParse("parse", quern::Unit::kBytes);  // define once per program
//
//   quern::Profile profile({.threads = 1});
//   {
//     const quern::ProfiledThread here(profile, 0);  // this thread's regions are timed from here on
//     const quern::Timed timed(kParse, bytes);       // to the end of the block
//     parse(text);
//   }
//   for (const quern::ProfileRow& row : profile.rows()) {
//     std::printf("%s: %.3f s, %.1f GB/s\n", row.name, row.total, row.work / row.total * 1e-9);
//   }
//
// In a profiled run (quern train --profile) the workers and the training thread are already profiled: a Timed in your
// own code adds a row to the table and appears in the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace quern {

enum class Unit : uint8_t { kNone, kFlops, kBytes };

// Max number of regions in a program; any further ones share a row, "more regions".
inline constexpr size_t kMaxRegions = 128;

// A row of the table. Define it once, as a constant.
class Region {
 public:
  // `name` must live as long as the program. `unit` is the unit of the work passed to Timed.
  explicit Region(const char* name, Unit unit = Unit::kNone) noexcept;
  size_t id() const noexcept { return id_; }

 private:
  size_t id_;
};

class ThreadProfile;

namespace detail {
extern constinit thread_local ThreadProfile* current_profile;
}

// Times the enclosing block. The time of nested timed blocks is counted for those only, so that the times of all
// regions add up. Costs a branch in a thread that is not profiled, and otherwise two clock reads, about 50 ns. No
// lock, no allocation, any thread. Must be destroyed in its own thread, in the reverse order of construction.
class Timed {
 public:
  static constexpr int32_t kNoLayer = -1;

  // `work` in the region's unit; `layer` is shown in the trace.
  explicit Timed(const Region& region, double work = 0, int32_t layer = kNoLayer) noexcept {
    if (detail::current_profile != nullptr) [[unlikely]]
      begin(region, work, layer);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() {
    if (profile_ != nullptr) [[unlikely]]
      end();
  }

 private:
  void begin(const Region& region, double work, int32_t layer) noexcept;
  void end() noexcept;

  ThreadProfile* profile_ = nullptr;  // the other members are set only if this is
  Timed* outer_;
  int64_t start_, inside_;  // nanoseconds; inside_ is the time of nested regions
  double work_;
  uint32_t region_;
  int32_t layer_;
};

// The totals of a region. Times are in seconds and exclude nested timed regions.
struct ProfileRow {
  const char* name;
  Unit unit;
  uint64_t count;
  double total, min, max;
  double work;

  double average() const { return total / static_cast<double>(count); }
  double rate() const { return total > 0 ? work / total : 0; }  // work per second of one thread
};

struct ProfileOptions {
  size_t threads = 1;
  size_t events = 0;  // newest calls per thread to record for a trace
};

class Profile {
 public:
  explicit Profile(const ProfileOptions& options);
  ~Profile();

  size_t threads() const { return threads_.size(); }
  ThreadProfile& thread(size_t i) { return *threads_[i]; }
  const ThreadProfile& thread(size_t i) const { return *threads_[i]; }

  // Totals over threads first to last - 1, longest first, without regions that were never entered. May be called at
  // any time; includes only calls that have ended.
  std::vector<ProfileRow> rows(size_t first, size_t last) const;
  std::vector<ProfileRow> rows() const { return rows(0, threads()); }

 private:
  std::vector<std::unique_ptr<ThreadProfile>> threads_;
};

// While it exists, this thread's regions are timed as thread `i` of the profile. The profile must outlive it, and no
// two threads may have the same `i` at once.
class ProfiledThread {
 public:
  ProfiledThread(Profile& profile, size_t i) noexcept : before_(detail::current_profile) {
    detail::current_profile = &profile.thread(i);
  }
  ProfiledThread(const ProfiledThread&) = delete;
  ProfiledThread& operator=(const ProfiledThread&) = delete;
  ~ProfiledThread() { detail::current_profile = before_; }

 private:
  ThreadProfile* before_;
};

}  // namespace quern
