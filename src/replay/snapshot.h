// Snapshots: files with the rows of a replay buffer in order, with priorities, compressed and checksummed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "replay/buffer.h"
#include "replay/row_block.h"

namespace quern::replay {

struct SnapshotOptions {
  size_t threads = 2;
  int acceleration = 1;  // of LZ4: higher is faster, with larger files
};

struct SnapshotResult {
  uint64_t rows = 0;
  uint64_t bytes = 0;    // of the file
  uint64_t skipped = 0;  // saving: rows overwritten before they were read; loading: rows that did not fit
};

// Saves the rows of the window at the time of the call, oldest first. Adds may continue meanwhile; rows that they
// overwrite before they are saved, or that are still being written then, are skipped and counted. The file appears
// complete or not at all: after an Error (such as a full disk) or a kill, the old file is unchanged, and leftovers of a
// killed save are removed by the next one. Any thread.
SnapshotResult save_snapshot(const ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options = {});

// A snapshot that is being saved by its own thread. Destroying it waits for that thread, which reads the buffer. A
// child of fork() has a copy of this object but no such thread: there, destroying it does not wait, and get() is an
// Error. Move-only; const methods may be called from any thread.
class BackgroundSave {
 public:
  BackgroundSave(BackgroundSave&& other) noexcept;
  BackgroundSave& operator=(BackgroundSave&& other) noexcept;
  ~BackgroundSave();

  // Waits at most this many seconds; returns whether saving is done. True in a child of fork(), where get() does not
  // wait.
  bool wait_for(double seconds) const;

  // Waits, then returns the result or throws the Error. Can be called repeatedly.
  SnapshotResult get() const;

 private:
  struct State;
  explicit BackgroundSave(std::unique_ptr<State> state) noexcept;
  friend BackgroundSave save_snapshot_in_background(const ReplayBuffer&, std::filesystem::path, const SnapshotOptions&);
  void let_go() noexcept;
  std::unique_ptr<State> state_;
};

// save_snapshot() on its own thread, with the window at the time of the call. The buffer must live until it is done.
BackgroundSave save_snapshot_in_background(const ReplayBuffer& buffer, std::filesystem::path path,
                                           const SnapshotOptions& options = {});

// Adds the rows of a snapshot to the buffer, after the existing rows, oldest first and under new ids: the newest
// capacity() of them if there are more. Other threads may add and sample meanwhile. The rows do not count for the rate
// limit, only for its minimum.
//
// Priorities are preserved exactly if both have the same alpha, otherwise recomputed from priority = weight ^ (1 /
// alpha). If the snapshot has none, rows get the highest so far, as in add(); if the buffer has none, they are ignored.
// Episodes are preserved, under new numbers, if both have them; otherwise every row is on its own.
//
// Error: damaged or truncated, another schema (with column, expected and found), another version, not a snapshot, a
// priority that is too large for the buffer. The checksums of the entire file are verified before anything is written,
// so that damage of any kind leaves the buffer unchanged. Only a maliciously crafted file, with correct checksums
// around a block that cannot be unpacked, causes an Error after the rows before that block (but none of its own) were
// added.
SnapshotResult load_snapshot(ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options = {});

// A new buffer in `storage` with the columns, priorities and rows of a snapshot. `capacity` 0: that of the buffer it
// was taken from. Error as for create() and load_snapshot(); nothing is left behind then.
ReplayBuffer from_snapshot(const std::filesystem::path& path, const Storage& storage, uint64_t capacity = 0,
                           const SnapshotOptions& options = {});

// Describes a snapshot. Error as in load_snapshot(), except that the rows are not checked.
struct SnapshotInfo {
  Schema schema;
  uint64_t rows = 0;
  bool prioritised = false;
  uint64_t capacity = 0;  // of the buffer it was taken from
  double alpha = 0;       // of its priorities
  uint64_t skipped = 0;   // rows that were overwritten while it was saved
  uint64_t bytes = 0;     // of the file
  // Of a buffer with episodes: its columns of episode ends, and the highest number of an episode in the snapshot.
  std::string terminal = {};
  std::string truncated = {};
  uint64_t episodes = 0;

  BlockKind kind() const noexcept { return {prioritised, !terminal.empty() || !truncated.empty()}; }
};
SnapshotInfo snapshot_info(const std::filesystem::path& path);

}  // namespace quern::replay
