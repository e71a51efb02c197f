// A replay buffer as a file: rows in order, with priorities, compressed and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "replay/buffer.h"

namespace quern::replay {

struct SnapshotOptions {
  size_t threads = 2;
  int acceleration = 1;  // of LZ4: more is faster and larger
};

struct SnapshotResult {
  uint64_t rows = 0;
  uint64_t bytes = 0;    // of the file
  uint64_t skipped = 0;  // saving: rows overwritten before they were reached; loading: rows that found no room
};

// Saves the rows of the window at the time of the call, oldest first; adds go on meanwhile, and what they overwrite
// before it was reached, or have not finished then, is left out and counted. The file appears complete, under its name,
// or not at all: after an Error (a full disk, say) or a kill the old one is there as it was, and what a killed save has
// left beside it is removed by the next one. Any thread.
SnapshotResult save_snapshot(const ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options = {});

// A snapshot that a thread of its own is saving. Destroying it waits for that thread, which reads the buffer. A child
// of fork() has a copy of this and no such thread: there it can be destroyed at once, and get() is an Error. Move-only;
// the methods that are const from any thread.
class BackgroundSave {
 public:
  BackgroundSave(BackgroundSave&& other) noexcept;
  BackgroundSave& operator=(BackgroundSave&& other) noexcept;
  ~BackgroundSave();

  // Whether it is done, after at most so many seconds. True in a child of fork(), where get() does not wait.
  bool wait_for(double seconds) const;

  // Waits, then gives the result or throws the Error, as often as it is called.
  SnapshotResult get() const;

 private:
  struct State;
  explicit BackgroundSave(std::unique_ptr<State> state) noexcept;
  friend BackgroundSave save_snapshot_in_background(const ReplayBuffer&, std::filesystem::path, const SnapshotOptions&);
  void let_go() noexcept;
  std::unique_ptr<State> state_;
};

// The same by a thread of its own, of the window at the time of the call. The buffer must live until it is done.
BackgroundSave save_snapshot_in_background(const ReplayBuffer& buffer, std::filesystem::path path,
                                           const SnapshotOptions& options = {});

// Adds the rows of a snapshot to the buffer, behind those that are there, oldest first and under new ids: the newest
// capacity() of them if there are more. Others may add and sample meanwhile. Rows do not count for the rate limit, only
// for its minimum.
//
// Priorities: kept to the unit where both have the same alpha, else computed again from priority = weight ^ (1 /
// alpha). If the snapshot has none, rows get the highest so far, as in add(); if the buffer has none, they are left
// out.
//
// Error: damaged or cut off, another schema (with column, expected and found), another version, not a snapshot, a
// priority that is too large for the buffer. Every byte of the file is compared with a checksum before anything is
// written, so that damage of any kind leaves the buffer as it was. Only a file that was made to deceive, with right
// checksums around a block that cannot be unpacked, is an Error after the rows before that block were added; and none
// of that block.
SnapshotResult load_snapshot(ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options = {});

// A new buffer at `place` with the columns, priorities and rows of a snapshot. `capacity` 0: that of the buffer it was
// taken from. Error as create() and load_snapshot(); nothing is left then.
ReplayBuffer from_snapshot(const std::filesystem::path& path, const Storage& storage, uint64_t capacity = 0,
                           const SnapshotOptions& options = {});

// What a snapshot holds. Error as in load_snapshot(), except that the rows are not looked at.
struct SnapshotInfo {
  Schema schema;
  uint64_t rows = 0;
  bool prioritised = false;
  uint64_t capacity = 0;  // of the buffer it was taken from
  double alpha = 0;       // of its priorities
  uint64_t skipped = 0;   // rows that were overwritten while it was saved
  uint64_t bytes = 0;     // of the file
};
SnapshotInfo snapshot_info(const std::filesystem::path& path);

}  // namespace quern::replay
