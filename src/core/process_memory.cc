#include "core/process_memory.h"

#include <fstream>
#include <string>
#include <string_view>

namespace quern {
namespace {

// A line of /proc/self/status, such as "VmHWM:   1234 kB".
uint64_t status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

uint64_t resident_bytes() { return status_bytes("VmRSS:"); }

uint64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void forget_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace quern
