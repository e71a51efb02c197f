#include "replay/buffer.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "replay/encoding.h"
#include "replay/inspect.h"
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

}  // namespace

struct ReplayBuffer::Parts {
  Parts(Memory&& taken, Schema&& its_schema, const BufferOptions& its_options)
      : memory(std::move(taken)),
        schema(std::move(its_schema)),
        options(its_options),
        layout(schema, options),
        columns(stored_columns(schema, layout, memory.data())),
        words(reinterpret_cast<std::atomic<uint64_t>*>(memory.data() + layout.words), options.capacity),
        ring({counter(CounterIndex::kReserved), counter(CounterIndex::kPublished), words.data(),
              &counter(CounterIndex::kMaxWeight)->second},
             options.capacity, join()),
        limiter(options.limit, counter(CounterIndex::kPublished), counter(CounterIndex::kInserts),
                counter(CounterIndex::kSamples), &memory.guard()) {
    if (options.prioritised) {
      tree.emplace(reinterpret_cast<std::atomic<uint64_t>*>(memory.data() + layout.tree), options.capacity);
    }
    if (options.has_episodes()) {
      links.emplace(reinterpret_cast<Link*>(memory.data() + layout.links), options.capacity,
                    &counter(CounterIndex::kInserts)->second);
      if (!options.terminal.empty()) terminal = schema.index_of(options.terminal);
      if (!options.truncated.empty()) truncated = schema.index_of(options.truncated);
    }
    forks = fork_count();
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
  uint64_t add_checked(std::span<const std::byte* const> from, size_t rows, std::span<const float> priorities,
                       std::span<Stream> streams);
  End end_of(std::span<const std::byte* const> from, size_t row) const noexcept;
  End stored_end(uint64_t slot) const noexcept;
  uint64_t place_in(Stream& stream) const noexcept;
  void advance(Stream& stream, End end, uint64_t written) const noexcept;
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
  std::optional<Links> links;
  std::optional<size_t> terminal, truncated;  // columns
  uint64_t forks = 0;                         // when this object was made
};

End ReplayBuffer::Parts::end_of(std::span<const std::byte* const> from, size_t row) const noexcept {
  if (terminal && from[*terminal][row] != std::byte{0}) return End::kTerminal;
  return truncated && from[*truncated][row] != std::byte{0} ? End::kTruncated : End::kNone;
}

// The same for a row in the buffer: inside Ring::write() or read().
End ReplayBuffer::Parts::stored_end(uint64_t slot) const noexcept {
  std::byte flag{0};
  if (terminal) copy_from_row(&flag, columns[*terminal].rows + slot, 1);
  if (flag != std::byte{0}) return End::kTerminal;
  if (truncated) copy_from_row(&flag, columns[*truncated].rows + slot, 1);
  return flag != std::byte{0} ? End::kTruncated : End::kNone;
}

// Of the next row. Step 0 begins an episode, also after 2^20 rows.
uint64_t ReplayBuffer::Parts::place_in(Stream& stream) const noexcept {
  if (step_of(stream.place) == 0) stream = {links->new_episodes(1) << kStepBits, kNoRow};
  return stream.place;
}

// A row that was not stored (kNoRow) leaves a gap in the places, which ends the sequences before it.
void ReplayBuffer::Parts::advance(Stream& stream, End end, uint64_t written) const noexcept {
  if (stream.last != kNoRow && written != kNoRow) links->connect(ring, stream.last, written);
  stream = end == End::kNone ? Stream{stream.place + 1, written} : Stream{};
}

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
  check_options(options, schema);
  const std::string header = make_header(schema, options);
  Memory memory = Memory::create(storage, Layout(schema, options).total, options.prefault);
  std::memcpy(memory.data(), header.data(), header.size());
  auto parts = std::make_unique<Parts>(std::move(memory), std::move(schema), options);
  if (options.prioritised) parts->raise_highest(parts->weight(1));
  parts->counter(CounterIndex::kReserved)->second = static_cast<uint64_t>(std::time(nullptr));
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

bool ReplayBuffer::remove(const Storage& storage) { return remove_buffer(storage); }

const Schema& ReplayBuffer::schema() const noexcept { return parts_->schema; }
const BufferOptions& ReplayBuffer::options() const noexcept { return parts_->options; }
uint64_t ReplayBuffer::capacity() const noexcept { return parts_->options.capacity; }
uint64_t ReplayBuffer::size() const noexcept {
  const uint64_t added = total_added();
  const uint64_t cleared = parts_->counter(CounterIndex::kPublished)->second.load(std::memory_order_acquire);
  return std::min(added - std::min(added, cleared), capacity());
}
uint64_t ReplayBuffer::total_added() const noexcept { return parts_->ring.published(); }
Ring& ReplayBuffer::ring() const noexcept { return parts_->ring; }
SumTree* ReplayBuffer::tree() const noexcept { return parts_->tree ? &*parts_->tree : nullptr; }
const Links* ReplayBuffer::links() const noexcept { return parts_->links ? &*parts_->links : nullptr; }
RateLimiter& ReplayBuffer::limiter() const noexcept { return parts_->limiter; }

std::byte* ReplayBuffer::stored(size_t column, uint64_t slot) const noexcept {
  const StoredColumn& found = parts_->columns[column];
  return found.rows + slot * found.stored_bytes;
}

size_t ReplayBuffer::value_bytes(size_t column) const noexcept { return parts_->columns[column].value_bytes; }
size_t ReplayBuffer::stored_bytes(size_t column) const noexcept { return parts_->columns[column].stored_bytes; }

void ReplayBuffer::load(size_t column, uint64_t slot, std::byte* values) const noexcept {
  const StoredColumn& found = parts_->columns[column];
  const std::byte* const row = found.rows + slot * found.stored_bytes;
  if (found.raw) {
    copy_from_row(values, row, found.value_bytes);
  } else {
    decode(parts_->schema.columns()[column], row, values);
  }
}

void ReplayBuffer::expect_own_process(std::string_view what) const {
  if (parts_->memory.descriptor() >= 0 || parts_->forks == fork_count()) return;
  throw Error(
      "[replay] {}: expected the process that created this private buffer, found a child of fork(), which has a copy "
      "that the parent never sees; create the buffer with shared=\"name\"",
      what);
}

uint64_t ReplayBuffer::add(std::span<const std::byte* const> columns, size_t rows, std::span<const float> priorities,
                           const Wait& wait, std::span<Stream> streams) {
  expect_own_process("add");
  parts_->check_values(columns, rows);  // before the rows are counted
  parts_->check_priorities(priorities, rows);
  if (parts_->options.limit.applies() && !parts_->limiter.admit_inserts(rows, wait)) {
    throw TimedOut("[replay] waited too long for samples (the buffer's rate limit)");
  }
  return parts_->add_checked(columns, rows, priorities, streams);
}

uint64_t ReplayBuffer::add_unlimited(std::span<const std::byte* const> columns, size_t rows,
                                     std::span<const float> priorities) {
  expect_own_process("add");
  parts_->check_values(columns, rows);
  parts_->check_priorities(priorities, rows);
  return parts_->add_checked(columns, rows, priorities, {});
}

uint64_t ReplayBuffer::Parts::add_checked(std::span<const std::byte* const> from, size_t rows,
                                          std::span<const float> priorities, std::span<Stream> streams) {
  // Reserved rows push older ones out of the sampling window, so a batch that is large for its ring is split.
  const uint64_t max = std::max<uint64_t>(1, options.capacity / 8);
  uint64_t id = 0, written = kNoRow;
  for (size_t row = 0; row < rows; ++row, ++id) {
    if (row % max == 0) id = ring.reserve(std::min<uint64_t>(max, rows - row));
    // Computed before the slot is claimed: another thread may have changed the priority since the check, and a slot
    // abandoned by an Error would stay busy forever.
    const uint64_t given = priorities.empty() ? 0 : weight(priorities[row]);
    Stream* const stream = !links || streams.empty() ? nullptr : &streams[row % streams.size()];
    const uint64_t place = stream == nullptr ? 0 : place_in(*stream);
    End end = End::kNone;
    written = ring.write(id, [&](uint64_t slot) {
      store_row(from, row, slot);
      if (links) {
        end = stored_end(slot);  // not end_of(from): another thread may change the caller's array meanwhile
        links->store(slot, place, end);
      }
      if (!tree) return;
      const uint64_t new_weight = priorities.empty() ? highest() : given;
      raise_highest(new_weight);
      tree->set(slot, new_weight);  // while the slot is claimed, so that the final weight is that of the last row
    });
    if (stream != nullptr) advance(*stream, written == kNoRow ? end_of(from, row) : end, written);
  }
  memory.expect_intact();
  return written == kNoRow && rows > 0 ? id - 1 : written;
}

void ReplayBuffer::put_stored(uint64_t first_id, std::span<const std::byte* const> columns, size_t rows,
                              std::span<const uint64_t> weights, std::span<const uint64_t> places) {
  for (size_t row = 0; row < rows; ++row) {
    parts_->ring.write(first_id + row, [&](uint64_t slot) {
      for (size_t c = 0; c < columns.size(); ++c) {
        const size_t bytes = parts_->columns[c].stored_bytes;
        copy_to_row(parts_->columns[c].rows + slot * bytes, columns[c] + row * bytes, bytes, parts_->columns[c].way);
      }
      if (parts_->links) parts_->links->store(slot, places.empty() ? 0 : places[row], parts_->stored_end(slot));
      if (!parts_->tree) return;
      const uint64_t weight = weights.empty() ? parts_->highest() : weights[row];
      parts_->raise_highest(weight);
      parts_->tree->set(slot, weight);
    });
  }
  expect_intact();
}

// Rows of an episode come in order, so the previous row of an episode is the last one seen.
void ReplayBuffer::connect_rows(uint64_t first, uint64_t end) {
  if (!parts_->links) return;
  struct Seen {
    uint64_t place, id;
  };
  std::unordered_map<uint64_t, Seen> episodes;
  for (uint64_t id = first; id < end; ++id) {
    Step step;
    if (!parts_->ring.read(id, [&](uint64_t slot) { step = parts_->links->load(slot); })) continue;
    if (step.place == 0) continue;
    const auto [found, is_new] = episodes.try_emplace(episode_of(step.place), Seen{step.place, id});
    if (!is_new && found->second.place + 1 == step.place) parts_->links->connect(parts_->ring, found->second.id, id);
    found->second = {step.place, id};
    if (step.end != End::kNone) episodes.erase(found);
  }
}

void ReplayBuffer::clear() {
  expect_own_process("clear");
  parts_->ring.clear([&](uint64_t slot) {
    if (parts_->tree) parts_->tree->set(slot, 0);
  });
  expect_intact();
}

void ReplayBuffer::count_sampled(uint64_t rows) const noexcept {
  parts_->counter(CounterIndex::kSamples)->second.fetch_add(rows, std::memory_order_relaxed);
}
uint64_t ReplayBuffer::total_sampled() const noexcept {
  return parts_->counter(CounterIndex::kSamples)->second.load(std::memory_order_relaxed);
}
uint64_t ReplayBuffer::created() const noexcept {
  return parts_->counter(CounterIndex::kReserved)->second.load(std::memory_order_relaxed);
}
uint64_t ReplayBuffer::bytes() const noexcept { return parts_->layout.total; }
size_t ReplayBuffer::handles() const { return parts_->writers ? parts_->writers->count() : 1; }

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
  expect_own_process("update_priorities");
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
