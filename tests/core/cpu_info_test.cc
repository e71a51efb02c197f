#include "core/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace quern {
namespace {

namespace fs = std::filesystem;

// A directory that stands for the / of another machine.
class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (fs::temp_directory_path() / "quern-cpu-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  ~FakeRoot() { fs::remove_all(path_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  void write_cache(const std::string& index, const std::string& level, const std::string& type,
                   const std::string& size) const {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/" + index + "/";
    write(folder + "level", level + "\n");
    write(folder + "type", type + "\n");
    write(folder + "size", size + "\n");
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(CpuInfo, ThisMachineHasCoresPagesAndMemory) {
  const CpuInfo info = cpu_info();
  EXPECT_GE(info.usable_cores, 1u);
  EXPECT_EQ(info.page_bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_GT(info.memory_bytes, size_t{64} << 20);
}

TEST(CpuInfo, UsableCoresFollowTheAffinityOfTheThread) {
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    EXPECT_EQ(cpu_info().usable_cores, static_cast<size_t>(CPU_COUNT(&all)));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(cpu_info().usable_cores, 1u);
  }).join();
}

TEST(CpuInfo, ReadsModelCachesAndHugePages) {
  const FakeRoot root;
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast Chip 9000\n\nprocessor\t: 1\nmodel name\t: Other\n");
  root.write_cache("index0", "1", "Data", "48K");
  root.write_cache("index1", "1", "Instruction", "32K");
  root.write_cache("index2", "2", "Unified", "2048K");
  root.write_cache("index3", "3", "Unified", "32M");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  const CpuInfo info = cpu_info(root.path());
  EXPECT_EQ(info.model, "Fast Chip 9000");
  EXPECT_EQ(info.l1d_bytes, 48u << 10);
  EXPECT_EQ(info.l2_bytes, 2u << 20);
  EXPECT_EQ(info.l3_bytes, 32u << 20);
  EXPECT_EQ(info.huge_pages, "madvise");
}

TEST(CpuInfo, MissingOrInvalidValuesAreZeroOrEmpty) {
  const FakeRoot root;
  root.write("proc/cpuinfo", "no colon\n:\nmodel name\t:\n");
  root.write_cache("index0", "1", "Data", "many");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "] [\n");
  const CpuInfo info = cpu_info(root.path());
  EXPECT_EQ(info.model, "");
  EXPECT_EQ(info.l1d_bytes, 0u);
  EXPECT_EQ(info.l2_bytes, 0u);
  EXPECT_EQ(info.l3_bytes, 0u);
  EXPECT_EQ(info.huge_pages, "");
}

}  // namespace
}  // namespace quern
