// Where in its memory the parts of a replay buffer lie, and the header that says so.
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

// The memory of a buffer, the same bytes wherever it lies:
//
//   0         magic, version, checksum, total bytes, capacity, options     one page
//   4096      the schema as text
//             counters, a cache line each
//             a word for every slot
//             the sum tree, if prioritised
//             the columns, one after another: row of slot 0, 1, 2, ...
//
// Every part starts at a cache line. Numbers are as the machine has them: one with another byte order finds no magic.
inline constexpr uint32_t kLayoutVersion = 1;
inline constexpr uint64_t kHeaderBytes = 4096;
inline constexpr uint64_t kMaxRows = uint64_t{1} << 40;

enum class CounterPlace : size_t { kReserved, kPublished, kInserts, kSamples, kMaxWeight };
inline constexpr size_t kCounters = 5;

// Whether a file that starts with these bytes was made as a buffer, of whatever version.
bool starts_as_buffer(std::string_view bytes) noexcept;

// Offsets in bytes. Error when it would be larger than a file can be.
struct Layout {
  Layout(const Schema& schema, const BufferOptions& options);

  uint64_t counters = 0;
  uint64_t words = 0;
  uint64_t tree = 0;  // 0 when not prioritised
  std::vector<uint64_t> columns;
  uint64_t total = 0;
};

// Error naming the option, unless a buffer can be made with them.
void check_options(const BufferOptions& options);

// The first bytes of a buffer, up to the counters.
std::string make_header(const Schema& schema, const BufferOptions& options);

// What the header of `memory` says. Any bytes at all may be there; Error when they are no buffer, of another version,
// or damaged, with what was expected and found.
struct Description {
  Schema schema;
  BufferOptions options;
};
Description read_header(const Memory& memory);

}  // namespace quern::replay
