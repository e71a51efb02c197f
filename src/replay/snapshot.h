// A replay buffer as a file: rows in order, with priorities, compressed and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>

#include "replay/buffer.h"

namespace quern::replay {

struct SnapshotOptions {
  size_t threads = 2;
  int acceleration = 1;  // of LZ4: more is faster and larger
};

struct SnapshotResult {
  uint64_t rows = 0;
  uint64_t bytes = 0;  // of the file
  uint64_t skipped =
      0;  // saving: rows that were overwritten before they were reached; loading: rows that found no room
};

// Saves the rows of the window at the time of the call, oldest first; adds go on meanwhile, and what they overwrite
// before it was reached is left out and counted. The file appears complete, under its name, or not at all.
SnapshotResult save_snapshot(const ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options = {});

// The same by a thread of its own; the buffer must live until the future is ready.
std::future<SnapshotResult> save_snapshot_in_background(const ReplayBuffer& buffer, std::filesystem::path path,
                                                        const SnapshotOptions& options = {});

// Adds the rows of a snapshot to the buffer, oldest first, with their priorities and under new ids: the newest
// capacity() of them if there are more. Everything is checked before anything is written... (Error: damaged, another
// schema, another version, not a snapshot).
SnapshotResult load_snapshot(ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options = {});

// What a snapshot holds, from its header.
struct SnapshotInfo {
  Schema schema;
  uint64_t rows = 0;
  bool prioritised = false;
  uint64_t capacity = 0;  // of the buffer it was taken from
};
SnapshotInfo snapshot_info(const std::filesystem::path& path);

}  // namespace quern::replay
