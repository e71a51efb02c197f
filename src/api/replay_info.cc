#include <algorithm>
#include <ctime>

#include "api/replay_impl.h"
#include "core/error.h"
#include "replay/inspect.h"

namespace quern {
namespace {

ReplayInfo info_from(const replay::BufferInfo& found) {
  ReplayInfo info;
  if (found.storage.kind == replay::Storage::Kind::kShared) info.storage.shared = found.storage.name;
  if (found.storage.kind == replay::Storage::Kind::kFile) info.storage.file = found.storage.name;
  info.path = found.path;
  info.problem = found.problem;
  info.bytes = found.bytes;
  info.handles = found.handles;
  if (!found.description) return info;
  info.columns = api::columns_of(found.description->schema);
  info.rows = found.rows;
  info.capacity = found.description->options.capacity;
  info.added = found.added;
  info.sampled = found.sampled;
  info.prioritised = found.description->options.prioritised;
  info.terminal = found.description->options.terminal;
  info.truncated = found.description->options.truncated;
  if (found.created > 0) {
    info.age_seconds = std::max(0.0, std::difftime(std::time(nullptr), static_cast<time_t>(found.created)));
  }
  return info;
}

}  // namespace

std::vector<ReplayInfo> ReplayBuffer::list() {
  std::vector<ReplayInfo> all;
  for (const replay::BufferInfo& found : replay::list_shared()) all.push_back(info_from(found));
  return all;
}

ReplayInfo ReplayBuffer::info(const ReplayStorage& storage) {
  const replay::Storage where = api::storage_from(storage);
  if (where.kind == replay::Storage::Kind::kPrivate) {
    throw Error("[replay] info: expected shared memory or a file, found neither");
  }
  return info_from(replay::inspect(where));
}

ReplayStats ReplayBuffer::stats() const {
  const replay::BufferStats found = impl_->meter.read();
  ReplayStats stats{.size = found.size,
                    .capacity = found.capacity,
                    .fill = found.fill,
                    .added = found.added,
                    .sampled = found.sampled,
                    .seconds = found.seconds,
                    .added_per_second = found.added_per_second,
                    .sampled_per_second = found.sampled_per_second,
                    .oldest_age = found.oldest_age,
                    .mean_age = found.mean_age,
                    .missing = found.missing,
                    .balance = found.balance,
                    .episodes = found.episodes,
                    .bytes = found.bytes,
                    .handles = found.handles,
                    .age_seconds = found.age_seconds};
  if (found.priorities) {
    stats.min_priority = found.priorities->min;
    stats.mean_priority = found.priorities->mean;
    stats.max_priority = found.priorities->max;
  }
  return stats;
}

}  // namespace quern
