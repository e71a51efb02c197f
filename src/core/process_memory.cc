#include "core/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

namespace quern {
namespace {

// Parses a line such as "VmHWM:      1234 kB".
uint64_t bytes_of_line(std::string_view status, std::string_view name) {
  size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  at = status.find_first_not_of(" \t", at + name.size());
  if (at == std::string_view::npos) return 0;
  uint64_t kilobytes = 0;
  std::from_chars(status.data() + at, status.data() + status.size(), kilobytes);
  return kilobytes * 1024;
}

}  // namespace

// A single read: the system generates the file on each read, so both numbers are from the same moment.
ProcessMemory process_memory() {
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 8192> text;  // 1,400 bytes, plus 11 for each group of the user
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  const std::string_view status(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
  return {.resident = bytes_of_line(status, "\nVmRSS:"), .peak = bytes_of_line(status, "\nVmHWM:")};
}

void forget_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace quern
