#include "quern/profile.h"

#include <algorithm>

#include "core/thread_profile.h"

namespace quern {
namespace {

// Regions are also constructed before main(), so this must not require dynamic initialization.
struct Registry {
  std::atomic<size_t> count{0};
  std::atomic<const char*> names[kMaxRegions] = {};
  std::atomic<Unit> units[kMaxRegions] = {};
};
constinit Registry registry;

constexpr size_t kMore = kMaxRegions - 1;
constexpr double kNanosecond = 1e-9;

}  // namespace

constinit thread_local ThreadProfile* detail::current_profile = nullptr;

Region::Region(const char* name, Unit unit) noexcept
    : id_(std::min(registry.count.fetch_add(1, std::memory_order_relaxed), kMore)) {
  registry.names[id_].store(id_ == kMore ? "more regions" : name, std::memory_order_relaxed);
  registry.units[id_].store(id_ == kMore ? Unit::kNone : unit, std::memory_order_relaxed);
}

const char* region_name(size_t id) { return registry.names[id].load(std::memory_order_relaxed); }
Unit region_unit(size_t id) { return registry.units[id].load(std::memory_order_relaxed); }

void Timed::begin(const Region& region, double work, int32_t layer) noexcept {
  profile_ = detail::current_profile;
  outer_ = profile_->open_;
  profile_->open_ = this;
  inside_ = 0;
  work_ = work;
  region_ = static_cast<uint32_t>(region.id());
  layer_ = layer;
  start_ = nanoseconds_now();
}

void Timed::end() noexcept {
  const int64_t end = nanoseconds_now(), whole = end - start_;
  profile_->add(profile_->event(start_, end, region_, layer_), whole - inside_, work_);
  profile_->open_ = outer_;
  if (outer_ != nullptr) outer_->inside_ += whole;
}

std::vector<ProfileEvent> ThreadProfile::events() const {
  const size_t size = std::min(kept_, events_.size()), first = kept_ - size;
  std::vector<ProfileEvent> all;
  all.reserve(size);
  for (size_t i = first; i < kept_; ++i) all.push_back(events_[i % events_.size()]);
  return all;
}

Profile::Profile(const ProfileOptions& options) {
  for (size_t i = 0; i < options.threads; ++i) threads_.push_back(std::make_unique<ThreadProfile>(options.events));
}

Profile::~Profile() = default;

std::vector<ProfileRow> Profile::rows(size_t first, size_t last) const {
  std::vector<ProfileRow> rows;
  for (size_t id = 0; id < kMaxRegions; ++id) {
    ProfileRow row{
        .name = region_name(id), .unit = region_unit(id), .count = 0, .total = 0, .min = 1e30, .max = 0, .work = 0};
    for (size_t i = first; i < last; ++i) {
      const ThreadProfile::Totals& totals = thread(i).totals(id);
      if (totals.count.get() == 0) continue;
      row.count += totals.count.get();
      row.total += kNanosecond * static_cast<double>(totals.total.get());
      row.min = std::min(row.min, kNanosecond * static_cast<double>(totals.min.get()));
      row.max = std::max(row.max, kNanosecond * static_cast<double>(totals.max.get()));
      row.work += totals.work.get();
    }
    if (row.count > 0) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.total > b.total; });
  return rows;
}

}  // namespace quern
