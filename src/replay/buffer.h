// A replay buffer: rows of samples in private memory, in shared memory or in a file, for threads and processes that add
// and sample concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "replay/episodes.h"
#include "replay/memory.h"
#include "replay/options.h"
#include "replay/rate_limiter.h"
#include "replay/ring.h"
#include "replay/schema.h"
#include "replay/sum_tree.h"

namespace quern::replay {

// Destroying it unmaps; shared memory and files stay until removed. Any thread may add, read and sample. After fork()
// the child may continue to use shared memory and files, which it shares with its parent. Private memory is copied:
// what the child adds would never reach the parent, and what it samples would never change. So in a child everything
// that adds, changes or samples rows is an Error; reading, saving and exporting the rows of the moment of the fork are
// not.
class ReplayBuffer {
 public:
  // A new buffer. Error when the name is taken, when the capacity is 0, or when there is not enough memory.
  static ReplayBuffer create(Schema schema, const BufferOptions& options, const Storage& storage = {});

  // A buffer that another process created, or that is in a file, with the schema and options it was created with. Waits
  // up to `patience` seconds for it to appear; it appears complete. Error: does not exist, another version, not a
  // buffer, damaged, owned by another user or writable by others (see Memory).
  static ReplayBuffer attach(const Storage& storage, double patience = 0);

  // attach() if it exists, with the same schema and options, otherwise create(). Any number of processes may call it at
  // once: one creates the buffer, the others wait for it and attach. Error when it exists with another schema or other
  // options (`prefault` may differ), and for private memory.
  static ReplayBuffer open_or_create(const Schema& schema, const BufferOptions& options, const Storage& storage);

  // Removes the name (the memory exists as long as a process has it mapped). False if it did not exist. Error for a
  // file that is not a replay buffer; one of another version, or a damaged one, is removed.
  static bool remove(const Storage& storage);

  ReplayBuffer(ReplayBuffer&& other) noexcept;
  ReplayBuffer& operator=(ReplayBuffer&& other) noexcept;
  ~ReplayBuffer();

  const Schema& schema() const noexcept;
  const BufferOptions& options() const noexcept;
  uint64_t capacity() const noexcept;
  uint64_t size() const noexcept;         // min(rows added since the last clear(), capacity())
  uint64_t total_added() const noexcept;  // rows, by all processes

  // Adds `rows` rows directly from the caller's arrays: columns[c] points to rows * value_bytes() of column c.
  // Priorities (one per row) only in a prioritised buffer; without them new rows get the highest so far. All values are
  // checked before anything is written (Error names column and row). Returns the id of the last row, kNoRow for none.
  // The ids of a batch are consecutive even with concurrent adds, unless it has more rows than an eighth of the
  // capacity. Waits until the buffer's rate limit admits the rows; TimedOut if that takes longer than `wait`. Rejected
  // rows are not counted. No lock, no allocation; no wait without a rate limit.
  // In a buffer with episodes, row r continues the episode of streams[r % streams.size()], which the caller keeps for
  // its next call; without streams, every row is on its own and part of no sequence.
  uint64_t add(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities = {},
               const Wait& wait = {}, std::span<Stream> streams = {});

  // The same, but not checked against the rate limit nor counted by it: for rows from a file.
  uint64_t add_unlimited(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities);

  // Error if the memory has been truncated since it was mapped (see Memory). add(), read(), update_priorities(),
  // samplers and snapshots check this too, after their work.
  void expect_intact() const;

  // Copies row `id` into the caller's arrays (one row of each column; a null pointer skips that column). False if the
  // row is no longer in the buffer.
  bool read(uint64_t id, std::span<std::byte* const> columns) const;

  // Sets the priorities of rows, skipping those that have been overwritten. Returns how many were set.
  size_t update_priorities(std::span<const uint64_t> ids, std::span<const float> priorities);

  // Removes all rows that have been added by now, for all processes at once: no call that starts later, in any process,
  // returns one of them. Rows whose add() has not returned may go with them or stay. Calls that are already copying
  // rows may still return them. Ids and total_added() continue; the rate limit waits for its minimum again. Time in
  // proportion to the capacity.
  void clear();

  // Error in a child of fork() if the memory is private. `what` is the call that would be lost, as in "add".
  void expect_own_process(std::string_view what) const;

  // For samplers and snapshots. load() decodes the values of a row; call it inside ring().read(), which tells whether
  // they are valid. stored() is the location of the encoded bytes, to be read with row_copy.h.
  Ring& ring() const noexcept;
  SumTree* tree() const noexcept;       // null unless prioritised
  const Links* links() const noexcept;  // null without episodes
  RateLimiter& limiter() const noexcept;
  std::byte* stored(size_t column, uint64_t slot) const noexcept;
  size_t value_bytes(size_t column) const noexcept;   // of a row, cached instead of computed from the shape
  size_t stored_bytes(size_t column) const noexcept;  // the same
  void load(size_t column, uint64_t slot, std::byte* values) const noexcept;

  // Writes already encoded rows under ids from ring().reserve(rows): columns[c] points to rows * stored_bytes().
  // `weights` are weights of the tree (one per row, at most largest_weight()), or empty: then as in add(). `places` are
  // those of the rows in their episodes, or empty: then every row is on its own. Nothing is checked.
  void put_stored(uint64_t first_id, std::span<const std::byte* const> columns, size_t rows,
                  std::span<const uint64_t> weights = {}, std::span<const uint64_t> places = {});

  // Finds the row that follows each row with an id from `first` to `end` - 1, after put_stored().
  void connect_rows(uint64_t first, uint64_t end);

  // Counters for statistics.
  void count_sampled(uint64_t rows) const noexcept;
  uint64_t total_sampled() const noexcept;  // rows, by all processes, since the buffer was created
  uint64_t created() const noexcept;        // seconds since 1970; 0 if not known
  uint64_t bytes() const noexcept;          // of the memory
  size_t handles() const;                   // buffer objects that are open in all processes; 1 for private memory

 private:
  struct Parts;
  explicit ReplayBuffer(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quern::replay
