#include "replay/buffer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "replay/encoding.h"
#include "replay/layout.h"
#include "replay/row_copy.h"
#include "replay/writers.h"

namespace quern::replay {
namespace {

// The properties of a column needed for copying, cached instead of computed from its shape.
struct StoredColumn {
  std::byte* rows;
  size_t stored_bytes;
  size_t value_bytes;
  bool raw;
  Through way;
};

std::vector<StoredColumn> stored_columns(const Schema& schema, const Layout& layout, std::byte* memory) {
  std::vector<StoredColumn> columns;
  for (size_t c = 0; c < schema.columns().size(); ++c) {
    const Column& column = schema.columns()[c];
    columns.push_back({memory + layout.columns[c], column.stored_bytes(), column.value_bytes(),
                       column.encoding == Encoding::kRaw, best_way(column.stored_bytes(), layout.total)});
  }
  return columns;
}

// Error when the path is something else, which the caller did not mean to delete.
void expect_buffer(const Storage& storage) {
  const std::filesystem::path path = storage.path();
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, ignored);
  if (!std::filesystem::exists(status)) return;
  if (storage.kind == Storage::Kind::kShared && std::filesystem::is_regular_file(status) &&
      std::filesystem::file_size(path, ignored) == 0) {
    return;  // truncated to nothing: the name shows that it was a buffer, and there is nothing to lose
  }
  std::string start(64, '\0');
  if (std::filesystem::is_regular_file(status)) std::ifstream(path, std::ios::binary).read(start.data(), 64);
  if (!starts_as_buffer(start)) {
    throw Error("{}: cannot remove: expected a replay buffer, found something else", storage.text());
  }
}

}  // namespace

struct ReplayBuffer::Parts {
  Parts(Memory&& taken, Schema&& its_schema, const BufferOptions& its_options)
      : memory(std::move(taken)),
        schema(std::move(its_schema)),
        options(its_options),
        layout(schema, options),
        columns(stored_columns(schema, layout, memory.data())),
        words(reinterpret_cast<std::atomic<uint64_t>*>(memory.data() + layout.words), options.capacity),
        ring({counter(CounterIndex::kReserved), counter(CounterIndex::kPublished), words.data()}, options.capacity,
             join()),
        limiter(options.limit, counter(CounterIndex::kPublished), counter(CounterIndex::kInserts),
                counter(CounterIndex::kSamples), &memory.guard()) {
    if (options.prioritised) {
      tree.emplace(reinterpret_cast<std::atomic<uint64_t>*>(memory.data() + layout.tree), options.capacity);
    }
  }

  Counter* counter(CounterIndex index) const noexcept {
    return reinterpret_cast<Counter*>(memory.data() + layout.counters) + static_cast<size_t>(index);
  }

  // Private memory needs no process index, but must know which rows the parent was writing when it forked.
  Writers* join() {
    if (memory.descriptor() < 0) {
      watch_forks();
      return nullptr;
    }
    return &writers.emplace(memory.descriptor(), memory.storage().path(), memory.storage().text(), words);
  }

  void store_row(std::span<const std::byte* const> from, size_t row, uint64_t slot) const noexcept {
    for (size_t c = 0; c < columns.size(); ++c) {
      const StoredColumn& column = columns[c];
      const std::byte* const values = from[c] + row * column.value_bytes;
      std::byte* const stored = column.rows + slot * column.stored_bytes;
      if (column.raw) {
        copy_to_row(stored, values, column.value_bytes, column.way);
      } else {
        encode(schema.columns()[c], values, stored);
      }
    }
  }

  void check_values(std::span<const std::byte* const> from, size_t rows) const;
  void check_priorities(std::span<const float> priorities, size_t rows) const;
  uint64_t add_checked(std::span<const std::byte* const> from, size_t rows, std::span<const float> priorities);
  uint64_t weight(double priority) const { return weight_of(priority, options.alpha, options.capacity); }
  void raise_highest(uint64_t weight) const noexcept;
  // Clamped to the maximum of weight_of(): shared memory may hold anything.
  uint64_t highest() const noexcept {
    return std::min(counter(CounterIndex::kMaxWeight)->value.load(std::memory_order_relaxed),
                    largest_weight(options.capacity));
  }

  Memory memory;
  Schema schema;
  BufferOptions options;
  Layout layout;
  std::vector<StoredColumn> columns;
  std::span<std::atomic<uint64_t>> words;
  std::optional<Writers> writers;
  Ring ring;
  RateLimiter limiter;
  std::optional<SumTree> tree;
};

void ReplayBuffer::Parts::check_values(std::span<const std::byte* const> from, size_t rows) const {
  if (from.size() != columns.size()) {
    throw Error("[replay] add: expected {} columns, found {}", columns.size(), from.size());
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    const Column& column = schema.columns()[c];
    if (from[c] == nullptr && rows > 0) {
      throw Error("[replay] add: column {}: expected {} values, found none", in_quotes(column.name), rows);
    }
    for (size_t row = 0; row < rows && !columns[c].raw; ++row) {
      size_t bad = 0;
      if (can_encode(column, from[c] + row * columns[c].value_bytes, bad)) continue;
      const bool bits = column.encoding == Encoding::kBits;
      throw Error("[replay] add: column {}: row {}: expected {}, found {} at element {}", in_quotes(column.name), row,
                  bits ? "zeros and ones" : fmt::format("at most {} values other than zero", column.max_nonzero),
                  bits ? "another value" : "one more", bad);
    }
  }
}

void ReplayBuffer::Parts::check_priorities(std::span<const float> priorities, size_t rows) const {
  if (priorities.empty()) return;
  if (!tree) throw Error("[replay] add: expected no priorities, since the buffer is not prioritised; found some");
  if (priorities.size() != rows) {
    throw Error("[replay] add: expected {} priorities, one per row, found {}", rows, priorities.size());
  }
  for (const float priority : priorities) static_cast<void>(weight(priority));
}

void ReplayBuffer::Parts::raise_highest(uint64_t weight) const noexcept {
  std::atomic<uint64_t>& highest = counter(CounterIndex::kMaxWeight)->value;
  uint64_t found = highest.load(std::memory_order_relaxed);
  while (found < weight && !highest.compare_exchange_weak(found, weight, std::memory_order_relaxed)) {
  }
}

ReplayBuffer::ReplayBuffer(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
ReplayBuffer::ReplayBuffer(ReplayBuffer&& other) noexcept = default;
ReplayBuffer& ReplayBuffer::operator=(ReplayBuffer&& other) noexcept = default;
ReplayBuffer::~ReplayBuffer() = default;

ReplayBuffer ReplayBuffer::create(Schema schema, const BufferOptions& options, const Storage& storage) {
  check_options(options);
  const std::string header = make_header(schema, options);
  Memory memory = Memory::create(storage, Layout(schema, options).total, options.prefault);
  std::memcpy(memory.data(), header.data(), header.size());
  auto parts = std::make_unique<Parts>(std::move(memory), std::move(schema), options);
  if (options.prioritised) parts->raise_highest(parts->weight(1));
  parts->memory.publish();
  return ReplayBuffer(std::move(parts));
}

ReplayBuffer ReplayBuffer::attach(const Storage& storage, double patience) {
  Memory memory = Memory::open(storage, patience);
  Description found = read_header(memory);
  memory.map(found.options.prefault);
  auto parts = std::make_unique<Parts>(std::move(memory), std::move(found.schema), found.options);
  if (storage.kind == Storage::Kind::kFile) parts->ring.catch_up();
  parts->memory.expect_intact();
  return ReplayBuffer(std::move(parts));
}

void ReplayBuffer::expect_intact() const { parts_->memory.expect_intact(); }

bool ReplayBuffer::remove(const Storage& storage) {
  expect_buffer(storage);
  return Memory::remove(storage);
}

const Schema& ReplayBuffer::schema() const noexcept { return parts_->schema; }
const BufferOptions& ReplayBuffer::options() const noexcept { return parts_->options; }
uint64_t ReplayBuffer::capacity() const noexcept { return parts_->options.capacity; }
uint64_t ReplayBuffer::size() const noexcept { return std::min(total_added(), capacity()); }
uint64_t ReplayBuffer::total_added() const noexcept { return parts_->ring.published(); }
Ring& ReplayBuffer::ring() const noexcept { return parts_->ring; }
SumTree* ReplayBuffer::tree() const noexcept { return parts_->tree ? &*parts_->tree : nullptr; }
RateLimiter& ReplayBuffer::limiter() const noexcept { return parts_->limiter; }

std::byte* ReplayBuffer::stored(size_t column, uint64_t slot) const noexcept {
  const StoredColumn& found = parts_->columns[column];
  return found.rows + slot * found.stored_bytes;
}

void ReplayBuffer::load(size_t column, uint64_t slot, std::byte* values) const noexcept {
  const StoredColumn& found = parts_->columns[column];
  const std::byte* const row = found.rows + slot * found.stored_bytes;
  if (found.raw) {
    copy_from_row(values, row, found.value_bytes);
  } else {
    decode(parts_->schema.columns()[column], row, values);
  }
}

uint64_t ReplayBuffer::add(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities,
                           const Wait& wait) {
  if (!parts_->options.limit.applies()) return add_unlimited(columns, rows, priorities);
  parts_->check_values(columns, rows);  // before the rows are counted
  parts_->check_priorities(priorities, rows);
  if (!parts_->limiter.admit_inserts(rows, wait)) {
    throw TimedOut("[replay] waited too long for samples (the buffer's rate limit)");
  }
  return parts_->add_checked(columns, rows, priorities);
}

uint64_t ReplayBuffer::add_unlimited(std::span<const std::byte* const> columns, size_t rows,
                                     std::span<const float> priorities) {
  parts_->check_values(columns, rows);
  parts_->check_priorities(priorities, rows);
  return parts_->add_checked(columns, rows, priorities);
}

uint64_t ReplayBuffer::Parts::add_checked(std::span<const std::byte* const> from, size_t rows,
                                          std::span<const float> priorities) {
  // Reserved rows push older ones out of the sampling window, so a batch that is large for its ring is split.
  const uint64_t max = std::max<uint64_t>(1, options.capacity / 8);
  uint64_t id = 0, written = kNoRow;
  for (size_t row = 0; row < rows; ++row, ++id) {
    if (row % max == 0) id = ring.reserve(std::min<uint64_t>(max, rows - row));
    // Computed before the slot is claimed: another thread may have changed the priority since the check, and a slot
    // abandoned by an Error would stay busy forever.
    const uint64_t given = priorities.empty() ? 0 : weight(priorities[row]);
    written = ring.write(id, [&](uint64_t slot) {
      store_row(from, row, slot);
      if (!tree) return;
      const uint64_t new_weight = priorities.empty() ? highest() : given;
      raise_highest(new_weight);
      tree->set(slot, new_weight);  // while the slot is claimed, so that the final weight is that of the last row
    });
  }
  memory.expect_intact();
  return written == kNoRow && rows > 0 ? id - 1 : written;
}

void ReplayBuffer::put_stored(uint64_t first_id, std::span<const std::byte* const> columns, size_t rows,
                              std::span<const uint64_t> weights) {
  for (size_t row = 0; row < rows; ++row) {
    parts_->ring.write(first_id + row, [&](uint64_t slot) {
      for (size_t c = 0; c < columns.size(); ++c) {
        const size_t bytes = parts_->columns[c].stored_bytes;
        copy_to_row(parts_->columns[c].rows + slot * bytes, columns[c] + row * bytes, bytes, parts_->columns[c].way);
      }
      if (!parts_->tree) return;
      const uint64_t weight = weights.empty() ? parts_->highest() : weights[row];
      parts_->raise_highest(weight);
      parts_->tree->set(slot, weight);
    });
  }
  expect_intact();
}

bool ReplayBuffer::read(uint64_t id, std::span<std::byte* const> columns) const {
  if (columns.size() != parts_->columns.size()) {
    throw Error("[replay] read: expected {} columns, found {}", parts_->columns.size(), columns.size());
  }
  const bool there = parts_->ring.read(id, [&](uint64_t slot) {
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c] != nullptr) load(c, slot, columns[c]);
    }
  });
  expect_intact();
  return there;
}

size_t ReplayBuffer::update_priorities(std::span<const uint64_t> ids, std::span<const float> priorities) {
  if (!parts_->tree) throw Error("[replay] update_priorities: expected a prioritised buffer, found one that is not");
  if (ids.size() != priorities.size()) {
    throw Error("[replay] update_priorities: expected as many priorities as ids, {}, found {}", ids.size(),
                priorities.size());
  }
  parts_->check_priorities(priorities, ids.size());
  size_t updated = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!parts_->ring.holds(ids[i])) continue;
    const uint64_t slot = ids[i] % capacity();
    const uint64_t weight = parts_->weight(priorities[i]);
    parts_->raise_highest(weight);
    parts_->tree->set(slot, weight);
    // Another thread may have claimed the slot, and set the weight of a new row, between the check and the set. Then
    // that row gets the default for rows without a priority: locking the slot instead would make readers miss it.
    if (parts_->ring.holds(ids[i])) {
      ++updated;
    } else {
      parts_->tree->set(slot, parts_->highest());
    }
  }
  expect_intact();
  return updated;
}

}  // namespace quern::replay
