#include "core/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

namespace quern {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "model name\t: X" is x86; ARM kernels write "Model" or "Hardware", if anything.
std::string model_name(const fs::path& cpuinfo) {
  std::ifstream file(cpuinfo);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (key == "model name" || key == "Model" || key == "Hardware") return line.substr(colon + 2);
  }
  return {};
}

// "48K", "2048K", "32M" or plain bytes; 0 for anything else.
size_t parse_size(std::string_view text) {
  size_t value = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && value < (size_t{1} << 40); ++i) {
    value = value * 10 + static_cast<size_t>(text[i] - '0');
  }
  const std::string_view unit = text.substr(i);
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  return unit.empty() ? value : 0;
}

// The size of the data (or unified) cache of `level`, according to sysfs, for the first core.
size_t cache_size(const fs::path& caches, std::string_view level) {
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(caches, missing)) {
    if (first_line(entry.path() / "level") != level || first_line(entry.path() / "type") == "Instruction") continue;
    return parse_size(first_line(entry.path() / "size"));
  }
  return 0;
}

size_t ask_system(int name) {
  const long answer = sysconf(name);
  return answer > 0 ? static_cast<size_t>(answer) : 0;
}

// The bracketed word in "always [madvise] never".
std::string chosen_word(const std::string& line) {
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  return open < close && close != std::string::npos ? line.substr(open + 1, close - open - 1) : std::string();
}

// Machines with more processors than a cpu_set_t has bits return EINVAL until the set is large enough.
size_t usable_cores() {
  for (size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return std::max<size_t>(1, static_cast<size_t>(CPU_COUNT_S(bytes, mask.data())));
    }
    if (errno != EINVAL) break;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

CpuInfo cpu_info(const fs::path& root) {
  CpuInfo info;
  const fs::path caches = root / "sys/devices/system/cpu/cpu0/cache";
  info.model = model_name(root / "proc/cpuinfo");
  info.usable_cores = usable_cores();
  info.l1d_bytes = cache_size(caches, "1");
  info.l2_bytes = cache_size(caches, "2");
  info.l3_bytes = cache_size(caches, "3");
  if (info.l1d_bytes == 0 && root == "/") {  // sandboxes without sysfs: the C library queries the processor itself
    info.l1d_bytes = ask_system(_SC_LEVEL1_DCACHE_SIZE);
    info.l2_bytes = ask_system(_SC_LEVEL2_CACHE_SIZE);
    info.l3_bytes = ask_system(_SC_LEVEL3_CACHE_SIZE);
  }
  info.huge_pages = chosen_word(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  info.page_bytes = ask_system(_SC_PAGESIZE);
  info.memory_bytes = ask_system(_SC_PHYS_PAGES) * info.page_bytes;
  return info;
}

}  // namespace quern
