// Saving a replay buffer of self-play positions to a file, and loading it.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/replay_rows.h"
#include "benchmarks/workloads.h"
#include "core/temporary_folder.h"
#include "replay/buffer.h"
#include "replay/snapshot.h"

namespace quern::bench {
namespace {

using replay::ReplayBuffer;

constexpr double kBar = 2;  // GB/s of samples

// Positions: planes of stones, a tenth of them ones; one plane with some other number; a policy of 40 moves.
void fill_positions(ReplayRows& rows, std::mt19937& random) {
  constexpr size_t kPlane = 64, kMoves = 40;
  for (float& x : rows.planes) x = random() % 10 == 0 ? 1.0f : 0.0f;
  std::fill(rows.policy.begin(), rows.policy.end(), 0.0f);
  for (size_t row = 0; row < kReplayBatch; ++row) {
    std::fill_n(rows.planes.begin() + static_cast<std::ptrdiff_t>(row * kPlanes), kPlane,
                static_cast<float>(random() % 100) / 100);
    for (size_t i = 0; i < kMoves; ++i)
      rows.policy[row * kPolicy + random() % kPolicy] = 1 / static_cast<float>(kMoves + i);
    rows.value[row] = static_cast<float>(random() % 2001) / 1000 - 1;
  }
}

ReplayBuffer filled_buffer(uint64_t capacity) {
  constexpr size_t kKinds = 4;  // of batches, 12.8 MB each: far beyond the 64 KiB window of LZ4
  ReplayBuffer buffer = ReplayBuffer::create(replay_schema(), {.capacity = capacity});
  std::mt19937 random(1);
  std::vector<ReplayRows> batches(kKinds);
  for (ReplayRows& batch : batches) fill_positions(batch, random);
  for (size_t i = 0; buffer.total_added() < capacity; ++i) {
    const std::vector<std::byte*> arrays = batches[i % kKinds].arrays();
    buffer.add(std::vector<const std::byte*>(arrays.begin(), arrays.end()),
               std::min<size_t>(kReplayBatch, capacity - buffer.total_added()));
  }
  return buffer;
}

// Whether the newest rows of both are the same, checking every 97th.
bool same_rows(const ReplayBuffer& one, const ReplayBuffer& two) {
  ReplayRows first, second;
  const std::vector<std::byte*> a = first.arrays(), b = second.arrays();
  const uint64_t end_a = one.ring().window().end, end_b = two.ring().window().end;
  for (uint64_t age = 0; age < one.size(); age += 97) {
    if (!one.read(end_a - 1 - age, a) || !two.read(end_b - 1 - age, b)) return false;
    for (size_t c = 0; c < kReplayColumns; ++c) {
      if (std::memcmp(a[c], b[c], kReplayRow[c]) != 0) return false;
    }
  }
  return true;
}

}  // namespace

void bench_replay_snapshot(Context& context) {
  if (!context.wants("replay/save") && !context.wants("replay/load")) return;
  const uint64_t rows = context.quick() ? 1000 : 50'000;
  const ReplayBuffer buffer = filled_buffer(rows);
  ReplayBuffer loaded = ReplayBuffer::create(replay_schema(), {.capacity = rows});
  const TemporaryFolder folder;
  const replay::SnapshotOptions options{.threads = context.threads()};
  const std::vector<double> times =
      best_times(context,
                 {[&] { replay::save_snapshot(buffer, folder / "rows.snapshot", options); },
                  [&] { replay::load_snapshot(loaded, folder / "rows.snapshot", options); }},
                 6.0, 5);
  if (!same_rows(buffer, loaded)) context.wrong_answer("replay/load", "a row differs from the one that was saved");
  const double gigabytes = static_cast<double>(rows * kReplayRowBytes) * 1e-9;
  context.add("replay/save", gigabytes / times[0], "GB/s", "2 GB/s of samples", kBar, 1.0);
  context.add("replay/load", gigabytes / times[1], "GB/s", "2 GB/s of samples", kBar, 1.0);
}

}  // namespace quern::bench
