#include "replay/stats.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/clock.h"
#include "replay/snapshot_file.h"

namespace quern::replay {
namespace {

// Ages and priorities of the rows that can be read.
void scan(const ReplayBuffer& buffer, BufferStats& stats) {
  const Window window = buffer.ring().window();
  uint64_t rows = 0;
  double ages = 0;
  BufferStats::Priorities priorities{.min = 1e300, .mean = 0, .max = 0};
  for (uint64_t id = window.begin; id < window.end; ++id) {
    if (!buffer.ring().holds(id)) continue;
    const uint64_t age = window.end - 1 - id;
    if (rows++ == 0) stats.oldest_age = age;
    ages += static_cast<double>(age);
    if (buffer.tree() == nullptr) continue;
    const double priority = priority_of(buffer.tree()->get(id % buffer.capacity()), buffer.options().alpha);
    priorities.min = std::min(priorities.min, priority);
    priorities.max = std::max(priorities.max, priority);
    priorities.mean += priority;
  }
  stats.missing = window.size() - rows;
  if (rows == 0) return;
  stats.mean_age = ages / static_cast<double>(rows);
  priorities.mean /= static_cast<double>(rows);
  if (buffer.tree() != nullptr) stats.priorities = priorities;
}

}  // namespace

StatsMeter::StatsMeter(const ReplayBuffer& buffer) : buffer_(&buffer), last_(now()) {}

StatsMeter::Moment StatsMeter::now() const { return {seconds_now(), buffer_->total_added(), buffer_->total_sampled()}; }

BufferStats StatsMeter::read() {
  const Moment here = now();
  Moment before = here;
  {
    const std::lock_guard guard(mutex_);
    std::swap(before, last_);
  }
  BufferStats stats{.size = buffer_->size(),
                    .capacity = buffer_->capacity(),
                    .added = here.added,
                    .sampled = here.sampled,
                    .seconds = here.time - before.time,
                    .bytes = buffer_->bytes(),
                    .handles = buffer_->handles()};
  stats.fill = static_cast<double>(stats.size) / static_cast<double>(stats.capacity);
  if (stats.seconds > 0) {
    stats.added_per_second = static_cast<double>(here.added - before.added) / stats.seconds;
    stats.sampled_per_second = static_cast<double>(here.sampled - before.sampled) / stats.seconds;
  }
  if (buffer_->options().limit.samples_per_insert > 0) stats.balance = buffer_->limiter().balance();
  if (buffer_->links() != nullptr) stats.episodes = buffer_->links()->episodes();
  if (buffer_->created() > 0) {
    stats.age_seconds = std::max(0.0, std::difftime(std::time(nullptr), static_cast<time_t>(buffer_->created())));
  }
  scan(*buffer_, stats);
  buffer_->expect_intact();
  return stats;
}

}  // namespace quern::replay
