// A profile's calls one by one, as a Chrome trace: ui.perfetto.dev and chrome://tracing open it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "quern/profile.h"

namespace quern::report {

// Calls that a trace keeps, of all threads together: 8 MB of memory, and a file of 30 MB or so.
inline constexpr size_t kTraceCalls = size_t{1} << 18;

struct TraceInfo {
  uint64_t first_step = 0, last_step = 0;  // 0: there are none
  bool whole = true;                       // false: it is the end of one step that is too long
  uint64_t calls = 0, bytes = 0;
};

// Writes what the profile's threads have kept, once none of them writes any more. A lane per thread: the first
// `workers` are workers, then comes the thread that trains. Steps of which some calls are no longer there are left out,
// unless there is nothing else.
// The file is replaced in one moment; Error when it cannot be written.
TraceInfo write_trace(const Profile& profile, size_t workers, const std::filesystem::path& path);

// Error when such a file could not be written there. Leaves what is there as it is.
void check_trace_path(const std::filesystem::path& path);

}  // namespace quern::report
