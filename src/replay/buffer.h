// A replay buffer: rows of samples in private memory, in shared memory or in a file, for threads and processes that add
// and sample concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "replay/memory.h"
#include "replay/options.h"
#include "replay/rate_limiter.h"
#include "replay/ring.h"
#include "replay/schema.h"
#include "replay/sum_tree.h"

namespace quern::replay {

// Destroying it unmaps; shared memory and files stay until removed. Any thread may add, read and sample. After fork()
// the child may continue to use it: shared memory and files are shared with the parent, private memory is copied.
class ReplayBuffer {
 public:
  // A new buffer. Error when the name is taken, when the capacity is 0, or when there is not enough memory.
  static ReplayBuffer create(Schema schema, const BufferOptions& options, const Storage& storage = {});

  // A buffer that another process created, or that is in a file, with the schema and options it was created with. Waits
  // up to `patience` seconds for it to appear; it appears complete. Error: does not exist, another version, not a
  // buffer, damaged, owned by another user or writable by others (see Memory).
  static ReplayBuffer attach(const Storage& storage, double patience = 0);

  // Removes the name (the memory exists as long as a process has it mapped). False if it did not exist. Error for a
  // file that is not a replay buffer; one of another version, or a damaged one, is removed.
  static bool remove(const Storage& storage);

  ReplayBuffer(ReplayBuffer&& other) noexcept;
  ReplayBuffer& operator=(ReplayBuffer&& other) noexcept;
  ~ReplayBuffer();

  const Schema& schema() const noexcept;
  const BufferOptions& options() const noexcept;
  uint64_t capacity() const noexcept;
  uint64_t size() const noexcept;         // min(total_added(), capacity())
  uint64_t total_added() const noexcept;  // rows, by all processes

  // Adds `rows` rows directly from the caller's arrays: columns[c] points to rows * value_bytes() of column c.
  // Priorities (one per row) only in a prioritised buffer; without them new rows get the highest so far. All values are
  // checked before anything is written (Error names column and row). Returns the id of the last row, kNoRow for none.
  // The ids of a batch are consecutive even with concurrent adds, unless it has more rows than an eighth of the
  // capacity. Waits until the buffer's rate limit admits the rows; TimedOut if that takes longer than `wait`. Rejected
  // rows are not counted. No lock, no allocation; no wait without a rate limit.
  uint64_t add(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities = {},
               const Wait& wait = {});

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

  // For samplers and snapshots. load() decodes the values of a row; call it inside ring().read(), which tells whether
  // they are valid. stored() is the location of the encoded bytes, to be read with row_copy.h.
  Ring& ring() const noexcept;
  SumTree* tree() const noexcept;  // null unless prioritised
  RateLimiter& limiter() const noexcept;
  std::byte* stored(size_t column, uint64_t slot) const noexcept;
  void load(size_t column, uint64_t slot, std::byte* values) const noexcept;

  // Writes already encoded rows under ids from ring().reserve(rows): columns[c] points to rows * stored_bytes().
  // `weights` are weights of the tree (one per row, at most largest_weight()), or empty: then as in add(). Nothing is
  // checked.
  void put_stored(uint64_t first_id, std::span<const std::byte* const> columns, size_t rows,
                  std::span<const uint64_t> weights = {});

 private:
  struct Parts;
  explicit ReplayBuffer(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quern::replay
