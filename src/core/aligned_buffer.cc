#include "core/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "core/error.h"

namespace quern {
namespace {

// No object may be larger: pointer differences within it must fit in ptrdiff_t.
constexpr size_t kMaxBytes = static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max());

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

size_t page_size() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

[[noreturn]] void throw_out_of_memory(size_t bytes) {
  throw Error("[memory] cannot allocate {} bytes ({:.1f} MiB)", bytes, static_cast<double>(bytes) / (1 << 20));
}

// Zeroed pages. The last huge page may be partial: the kernel then uses small pages there, and no memory is lost to
// rounding. The kernel only aligns to 4 KiB, so this maps an extra huge page and unmaps the excess.
void* map_huge(size_t bytes) {
  if (bytes > kMaxBytes - 2 * kHugePage) throw_out_of_memory(bytes);
  const size_t length = round_up(bytes, page_size());
  const size_t mapped = length + kHugePage;
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_out_of_memory(bytes);
  char* begin = static_cast<char*>(memory);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t before = round_up(address, kHugePage) - address;
  const size_t after = mapped - before - length;
  if (before > 0) ::munmap(begin, before);
  if (after > 0) ::munmap(begin + before + length, after);
  ::madvise(begin + before, length, MADV_HUGEPAGE);  // a hint: kernels without huge pages reject it, which is harmless
  return begin + before;
}

void* allocate_small(size_t bytes, Fill fill) {
  void* memory = ::operator new(bytes, std::align_val_t(kAlignment), std::nothrow);
  if (memory == nullptr) throw_out_of_memory(bytes);
  if (fill == Fill::kZero) std::memset(memory, 0, bytes);
  return memory;
}

}  // namespace

void* allocate_bytes(size_t bytes, Fill fill) {
  if (bytes == 0) return nullptr;
  return bytes >= kHugePage ? map_huge(bytes) : allocate_small(bytes, fill);
}

void free_bytes(void* memory, size_t bytes) noexcept {
  if (memory == nullptr) return;
  if (bytes >= kHugePage) {
    ::munmap(memory, round_up(bytes, page_size()));
  } else {
    ::operator delete(memory, std::align_val_t(kAlignment));
  }
}

// A page that was given back reads as zeros. If the kernel refuses, for example because the memory is locked, the page
// is zeroed in place.
void discard_bytes(void* memory, size_t bytes) noexcept {
  if (bytes == 0) return;
  char* begin = static_cast<char*>(memory);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t first = std::min(bytes, round_up(address, page_size()) - address);
  const size_t pages = (bytes - first) / page_size() * page_size();
  std::memset(begin, 0, first);
  if (pages > 0 && ::madvise(begin + first, pages, MADV_DONTNEED) != 0) std::memset(begin + first, 0, pages);
  std::memset(begin + first + pages, 0, bytes - first - pages);
}

void use_small_pages(void* memory, size_t bytes) noexcept {
  if (bytes >= kHugePage) ::madvise(memory, round_up(bytes, page_size()), MADV_NOHUGEPAGE);  // a hint, too
}

size_t checked_bytes(size_t count, size_t size) {
  if (size == 0 || count <= kMaxBytes / size) return count * size;
  throw Error("[memory] expected at most {} bytes, found {} elements of {} bytes", kMaxBytes, count, size);
}

}  // namespace quern
