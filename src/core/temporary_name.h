// Names of files and directories that are being written. Only these are ever removed as leftovers of a killed process.
//
//   .tmp-quern-NAME-PID-NUMBER-CHECK
//
// NAME is the final name, PID and NUMBER make it unique, and CHECK is the CRC-32C of everything before it, in eight
// hexadecimal digits. An unrelated name has the right CHECK by chance once in 2^32.
#pragma once

#include <filesystem>
#include <string_view>

namespace quern {

inline constexpr std::string_view kTemporaryPrefix = ".tmp-quern-";

// A new name in the directory of `path`, unique across processes and within this one. Any thread.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

// Whether `name` has the form that temporary_beside() generates.
bool is_temporary_name(std::string_view name);

// Whether `name` has the form that temporary_beside() generates for a file called `target`.
bool is_temporary_name_of(std::string_view name, std::string_view target);

}  // namespace quern
