// A replay buffer: rows of samples in private memory, in shared memory or in a file, for threads and processes that add
// and sample at once.
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
// the child may go on using it: shared memory and files are the same ones, private memory is the child's own copy.
class ReplayBuffer {
 public:
  // A new buffer. Error when something of that name exists, when the capacity is 0, or when there is not enough memory.
  static ReplayBuffer create(Schema schema, const BufferOptions& options, const Storage& storage = {});

  // One that another process created, or that lies in a file; schema and options are those it was made with. Waits up
  // to `patience` seconds for it to appear; it appears complete. Error: no such thing, another version, not a buffer,
  // damaged, of another user or writable by others (see Memory).
  static ReplayBuffer attach(const Storage& storage, double patience = 0);

  // Removes the name (the memory lives on while somebody has it mapped). False if there was none. Error for a file that
  // is not a replay buffer; one of another version, or a damaged one, is removed.
  static bool remove(const Storage& storage);

  ReplayBuffer(ReplayBuffer&& other) noexcept;
  ReplayBuffer& operator=(ReplayBuffer&& other) noexcept;
  ~ReplayBuffer();

  const Schema& schema() const noexcept;
  const BufferOptions& options() const noexcept;
  uint64_t capacity() const noexcept;
  uint64_t size() const noexcept;         // min(total_added(), capacity())
  uint64_t total_added() const noexcept;  // rows, by everyone

  // Adds `rows` rows straight from the caller's arrays: columns[c] points to rows * value_bytes() of column c.
  // Priorities (one a row) only in a prioritised buffer; without them new rows get the highest so far. All values are
  // checked before anything is written (Error names column and row). Returns the id of the last row, kNoRow for none.
  // The ids of a batch follow one another while others add too, unless it has more rows than an eighth of the capacity.
  // Waits until the buffer's rate limit admits the rows, TimedOut when that takes longer than `wait`; what is refused
  // is not counted. No lock, no allocation; without a rate limit no wait.
  uint64_t add(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities = {},
               const Wait& wait = {});

  // The same without a look at the rate limit, and not counted by it: for rows from a file.
  uint64_t add_unlimited(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities);

  // Error when somebody has cut the memory short since it was mapped (see Memory): add(), read(), update_priorities(),
  // samplers and snapshots look at that too, after their work.
  void expect_intact() const;

  // Copies row `id` into the caller's arrays (one row of each column; a null pointer leaves that column out). False if
  // it is not there any more.
  bool read(uint64_t id, std::span<std::byte* const> columns) const;

  // New priorities for rows; those that were overwritten meanwhile are left out. Returns how many were set.
  size_t update_priorities(std::span<const uint64_t> ids, std::span<const float> priorities);

  // For samplers and snapshots. load() gives the values of a row, and is to be called inside of ring().read(), which
  // tells whether they are worth anything; stored() is where the encoded bytes lie, to be read with row_copy.h.
  Ring& ring() const noexcept;
  SumTree* tree() const noexcept;  // null unless prioritised
  RateLimiter& limiter() const noexcept;
  std::byte* stored(size_t column, uint64_t slot) const noexcept;
  void load(size_t column, uint64_t slot, std::byte* values) const noexcept;

  // Writes rows under ids that ring().reserve(rows) gave, as they are stored: columns[c] points to rows *
  // stored_bytes(). `weights` are those of the tree (one a row, small enough for it), or empty: then as in add().
  // Nothing is checked.
  void put_stored(uint64_t first_id, std::span<const std::byte* const> columns, size_t rows,
                  std::span<const uint64_t> weights = {});

 private:
  struct Parts;
  explicit ReplayBuffer(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quern::replay
