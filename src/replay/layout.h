// The memory layout of a replay buffer, and the header that describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/memory.h"
#include "replay/options.h"
#include "replay/schema.h"

namespace quern::replay {

// The memory of a buffer, the same bytes in every kind of storage:
//
// clang-format off
//   0         magic, version, checksum, total bytes, capacity, options     one page
//   4096      the schema as text
//             counters, a cache line each
//             a word for every slot
//             the link of every slot, if the buffer has episodes
//             the sum tree, if prioritised
//             the columns, one after another: row of slot 0, 1, 2, ...
// clang-format on
//
// Every part starts at a cache line. Numbers are in native byte order: a machine with another one rejects the magic.
// A buffer with episodes has version 2, every other buffer version 1.
inline constexpr uint32_t kLayoutVersion = 1;
inline constexpr uint32_t kEpisodesVersion = 2;
inline constexpr uint64_t kHeaderBytes = 4096;
inline constexpr uint64_t kMaxRows = uint64_t{1} << 40;

// The second number of each line, in the order of the counters: when the buffer was created (seconds since 1970), rows
// published when it was last cleared, episodes begun, rows sampled, and the first id that was not cleared.
enum class CounterIndex : size_t { kReserved, kPublished, kInserts, kSamples, kMaxWeight };
inline constexpr size_t kCounters = 5;

// Whether a file that starts with these bytes was created as a buffer, of any version.
bool starts_as_buffer(std::string_view bytes) noexcept;

// Offsets in bytes. Error if the total exceeds the maximum file size.
struct Layout {
  Layout(const Schema& schema, const BufferOptions& options);

  uint64_t counters = 0;
  uint64_t words = 0;
  uint64_t links = 0;  // 0 without episodes
  uint64_t tree = 0;   // 0 when not prioritised
  std::vector<uint64_t> columns;
  uint64_t total = 0;
};

// Error naming the option, unless a buffer can be created with them.
void check_options(const BufferOptions& options, const Schema& schema);

// The first bytes of a buffer, up to the counters.
std::string make_header(const Schema& schema, const BufferOptions& options);

// The contents of the header of `memory`, which may hold arbitrary bytes. Error, with what was expected and found, when
// it is not a buffer, is of another version, or is damaged.
struct Description {
  Schema schema;
  BufferOptions options;
};
Description read_header(const Memory& memory);

}  // namespace quern::replay
