// The names of files and directories that are being written: only these are ever removed as leftovers of a kill.
//
//   .tmp-quern-NAME-PID-NUMBER-CHECK
//
// NAME is the name that it will have, PID and NUMBER make it unique, CHECK is the CRC-32C of all that precedes it, in
// eight hexadecimal digits. A name that somebody else chose has the right CHECK by chance once in 2^32.
#pragma once

#include <filesystem>
#include <string_view>

namespace quern {

inline constexpr std::string_view kTemporaryPrefix = ".tmp-quern-";

// A new name beside `path`, unique among processes and within this one. Any thread.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

// Whether temporary_beside() makes such names.
bool is_temporary_name(std::string_view name);

// Whether it makes such names for a file that will be called `target`.
bool is_temporary_name_of(std::string_view name, std::string_view target);

}  // namespace quern
