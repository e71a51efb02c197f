#include "core/process_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace quern {
namespace {

TEST(ProcessMemory, GrowsWithWrittenPagesAndRemembersThePeak) {
  constexpr size_t kBytes = 64 << 20;
  const ProcessMemory before = process_memory();
  ASSERT_GT(before.resident, 0u);
  {
    const auto memory = std::make_unique<char[]>(kBytes);
    std::memset(memory.get(), 1, kBytes);
    const ProcessMemory during = process_memory();
    EXPECT_GT(during.resident, before.resident + kBytes / 2);
    EXPECT_GE(during.peak, during.resident - kBytes / 2);  // the system counts both in batches of pages
    EXPECT_NE(memory[kBytes / 3], 0);
  }
  EXPECT_GT(process_memory().peak, before.resident + kBytes / 2);
}

}  // namespace
}  // namespace quern
