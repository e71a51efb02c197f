// Replay buffers: rows of numbers that threads and processes add and sample concurrently.
//
//   quern::ReplayBuffer buffer({{"state", "float32", {8}}, {"action", "int32"}, {"reward", "float32"}},
//                              {.capacity = 100'000, .storage = {.shared = "games"}});
//   buffer.add({{"state", state}, {"action", action}, {"reward", reward}});  // one row; any thread, any process
//
//   const quern::Sample batch = buffer.sample(256, {.rule = quern::Rule::kRecent, .half_life = 10'000});
//   const std::span<const float> states = batch.values<float>("state");  // (256, 8)
//
// Another process accesses the same rows with quern::ReplayBuffer::attach({.shared = "games"}).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/error.h>
#include <quern/replay_episodes.h>
#include <quern/replay_values.h>

namespace quern {

// Where a buffer lives: in shared memory of this name, in this file, or, with neither, in private memory.
struct ReplayStorage {
  std::string shared = {};
  std::filesystem::path file = {};
};

struct ReplayOptions {
  uint64_t capacity = 0;  // rows; adding to a full buffer overwrites the oldest
  ReplayStorage storage = {};
  bool prioritised = false;  // stores a priority for each row, for Rule::kPrioritised
  double alpha = 0.6;        // a row is drawn in proportion to priority ^ alpha
  // The rate limit: add() and sample() wait for each other, so that each row is sampled this often on average.
  double samples_per_insert = 0;  // 0: no limit
  uint64_t min_size = 1;          // rows before the first sample
  double slack = 0;               // samples by which either side may run ahead
  // The columns that mark the last row of an episode, bool or uint8: it ended in a terminal state, or it was cut off.
  // With either, the buffer knows which rows follow each other, and rows are added by writer() or as whole batches.
  std::string terminal = {};
  std::string truncated = {};
  bool prefault = true;               // touch all memory now, so that add() never takes a page fault
  std::optional<uint64_t> seed = {};  // of sample(); by default random, and different in each process
};

struct SnapshotResult {
  uint64_t rows = 0;
  uint64_t bytes = 0;    // of the file
  uint64_t skipped = 0;  // rows overwritten while saving, or rows that did not fit while loading
};

struct ReplayStats {
  uint64_t size = 0, capacity = 0;
  double fill = 0;                                      // size / capacity
  uint64_t added = 0, sampled = 0;                      // rows, by all processes, since the buffer was created
  double seconds = 0;                                   // since the last stats() of this object, or its creation
  double added_per_second = 0, sampled_per_second = 0;  // in these seconds
  uint64_t oldest_age = 0;                              // rows added since
  double mean_age = 0;
  uint64_t missing = 0;  // ids among the newest without a row: being written, or lost with a killed process
  std::optional<double> min_priority = {}, mean_priority = {}, max_priority = {};
  std::optional<double> balance = {};     // samples_per_insert * rows added - rows sampled
  std::optional<uint64_t> episodes = {};  // begun
  uint64_t bytes = 0;
  size_t handles = 1;                      // buffer objects that are open on it, in all processes
  std::optional<double> age_seconds = {};  // since the buffer was created
};

// A buffer in shared memory or a file, as seen from outside.
struct ReplayInfo {
  ReplayStorage storage;
  std::filesystem::path path;
  std::string problem;  // why it cannot be used; then the fields below, but for bytes and handles, are empty
  uint64_t bytes = 0;
  size_t handles = 0;  // buffer objects that are open on it, in all processes
  std::vector<Column> columns;
  uint64_t rows = 0, capacity = 0, added = 0, sampled = 0;
  bool prioritised = false;
  std::string terminal, truncated;
  std::optional<double> age_seconds;  // since it was created
};

// Any thread may call any member function; no call takes a lock, except stats(). After fork() the child may use a
// buffer in shared memory or a file. One in private memory was copied, so there everything that adds, changes or
// samples rows is an Error; get(), save() and export_npz() see the rows of the moment of the fork. Destroying it unmaps
// the memory; shared memory and files stay until remove(). Values are checked before anything is written: Error names
// the column and the row. docs/replay.md has the guarantees and the file formats.
class ReplayBuffer {
 public:
  // A new buffer. Error when the name or the file exists, or there is not enough memory.
  ReplayBuffer(const std::vector<Column>& columns, const ReplayOptions& options);

  // Attaches to a buffer that another process created, or that is in a file; waits up to `patience` seconds for it to
  // appear. Error when it does not exist, is damaged, or belongs to another user.
  static ReplayBuffer attach(const ReplayStorage& storage, double patience = 0, std::optional<uint64_t> seed = {});

  // attach() if it exists with the same columns and options, otherwise a new buffer. Any number of processes may call
  // it at once. Error when it exists with other columns or options, and for private memory.
  static ReplayBuffer open_or_create(const std::vector<Column>& columns, const ReplayOptions& options);

  // The buffers of this user in shared memory, by name; and one of them, or a file (Error when it does not exist).
  static std::vector<ReplayInfo> list();
  static ReplayInfo info(const ReplayStorage& storage);

  // Deletes the shared memory or file; processes that have it mapped can still use it. False if it did not exist.
  static bool remove(const ReplayStorage& storage);

  // A new buffer with the columns and rows of a snapshot; `capacity` 0: that of the buffer it was saved from.
  static ReplayBuffer from_snapshot(const std::filesystem::path& path, const ReplayStorage& storage = {},
                                    uint64_t capacity = 0, std::optional<uint64_t> seed = {});

  ReplayBuffer(ReplayBuffer&&) noexcept;
  ReplayBuffer& operator=(ReplayBuffer&&) noexcept;
  ~ReplayBuffer();

  // Adds one row: every column once, in any order. Without a priority, the row gets the highest so far. Returns its id.
  // Error in a buffer with episodes, where a row has to be that of an actor: use writer().
  uint64_t add(const ColumnValues& values, std::optional<float> priority = {}, double timeout = kNoTimeout);
  // Adds rows, stored consecutively in each array. Returns the id of the last; nullopt for no rows. In a buffer with
  // episodes these are consecutive rows of one actor: the first begins an episode, and so does each row after an end.
  std::optional<uint64_t> add_batch(const ColumnValues& values, std::span<const float> priorities = {},
                                    double timeout = kNoTimeout);

  // Draws `n` rows into new memory, or into that of an earlier sample. The rows drawn depend on the seed, the number of
  // earlier calls and the rows in the buffer. Error when the buffer is empty or does not support the rule.
  Sample sample(size_t n, const SampleOptions& options = {});
  void sample(size_t n, Sample& out, const SampleOptions& options = {});

  // For one actor, or for `streams` that are added row by row together. Error unless the buffer has episodes.
  ReplayWriter writer(size_t streams = 1);

  // Draws `n` sequences of `length` rows, or `n` rows with what follows them. Error unless the buffer has episodes, and
  // when no row can be drawn. For the rate limit a sequence counts as `length` rows, an n-step return as one.
  SequenceSample sample_sequences(size_t n, size_t length, const SequenceOptions& options = {});
  NStepSample sample_n_step(size_t n, const NStepOptions& options);

  // The row with this id; nullopt if it has been overwritten.
  std::optional<Sample> get(uint64_t id) const;
  // The rows with these ids, in their order; mask() tells which of them were in the buffer.
  Sample get(std::span<const uint64_t> ids) const;

  // Removes all rows, for all processes at once: no call that starts afterwards returns one of them. Ids and
  // total_added() continue, and the rate limit waits for min_size rows again.
  void clear();

  // Time in proportion to the rows: about 3 ms per million, 10 with priorities.
  ReplayStats stats() const;

  // Rows that have been overwritten are skipped. Returns how many were set.
  size_t update_priorities(std::span<const uint64_t> ids, std::span<const float> priorities);

  // Snapshots: compressed and checksummed. The file appears complete or not at all; rows may be added meanwhile.
  SnapshotResult save(const std::filesystem::path& path, size_t threads = 0) const;
  SnapshotResult load(const std::filesystem::path& path, size_t threads = 0);  // adds its rows
  SnapshotResult export_npz(const std::filesystem::path& path) const;          // for numpy.load
  SnapshotResult import_npz(const std::filesystem::path& path);                // adds its rows

  uint64_t size() const;         // rows in the buffer
  uint64_t capacity() const;     // max rows
  uint64_t total_added() const;  // rows ever added, by every process
  const std::vector<Column>& columns() const;
  size_t row_bytes() const;  // memory of a row
  uint64_t seed() const;     // of sample() in this process
  bool prioritised() const;

 private:
  friend class ReplayWriter;
  class Impl;
  explicit ReplayBuffer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quern
