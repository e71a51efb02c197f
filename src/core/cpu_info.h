// Properties of the processor and the system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace quern {

// A field that the system does not report is 0 or empty.
struct CpuInfo {
  std::string model;        // "AMD Ryzen 7 5800X 8-Core Processor"
  size_t usable_cores = 1;  // logical processors this thread may run on (taskset and containers narrow it); at least 1
  size_t l1d_bytes = 0;     // of the first core
  size_t l2_bytes = 0;
  size_t l3_bytes = 0;  // may be shared by several cores
  size_t page_bytes = 0;
  std::string huge_pages;  // transparent huge pages: "always", "madvise" or "never"
  size_t memory_bytes = 0;
};

// Reads a handful of small files: call it once and store the result. Missing files do not cause an exception. `root` is
// where /proc and /sys are read from, so that a test can describe another machine; cores, page size and memory are
// always those of the actual machine.
CpuInfo cpu_info(const std::filesystem::path& root = "/");

}  // namespace quern
