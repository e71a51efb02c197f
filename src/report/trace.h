// Writes the individual calls of a profile as a Chrome trace, for ui.perfetto.dev or chrome://tracing.
#pragma once

#include <cstdint>
#include <filesystem>

#include "quern/profile.h"

namespace quern::report {

// Maximum number of calls in a trace, over all threads: 8 MB of memory, and a file of about 30 MB.
inline constexpr size_t kTraceCalls = size_t{1} << 18;

struct TraceInfo {
  uint64_t first_step = 0, last_step = 0;  // 0: no steps
  bool complete = true;                    // false: only the end of one step, which is too long
  uint64_t calls = 0, bytes = 0;
};

// Writes the calls that the profile's threads have retained. Call when no thread writes to the profile any more. There
// is one lane per thread: the first `workers` are workers, then comes the training thread. Steps with missing calls are
// omitted, unless there are no others. The file is replaced atomically; Error if it cannot be written.
TraceInfo write_trace(const Profile& profile, size_t workers, const std::filesystem::path& path);

// Error if a trace could not be written to `path`. Does not change an existing file.
void check_trace_path(const std::filesystem::path& path);

}  // namespace quern::report
