// Counts what the whole program allocates, on every thread: malloc and its relatives, through which operator new goes
// too, and mmap. Only one file of a test program may include this, since it replaces the functions.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace quern::test {

inline std::atomic<size_t> allocation_count{0};

inline void count_allocation() { allocation_count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace quern::test

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// A sanitizer has its own malloc, which tells who asks. Its header is not among those that g++ installs.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                                         void (*on_free)(const volatile void*));

namespace quern::test {
inline constexpr bool kCountsAllocations = true;
inline const int kHooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { count_allocation(); }, [](const volatile void*) {});
}  // namespace quern::test

#elif defined(__GLIBC__)

namespace quern::test {
inline constexpr bool kCountsAllocations = true;
}

// The functions of the C library under the names that it keeps for this purpose; its free() takes the memory back.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) noexcept {
  quern::test::count_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  quern::test::count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  quern::test::count_allocation();
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  quern::test::count_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  quern::test::count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  quern::test::count_allocation();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) noexcept {
  quern::test::count_allocation();
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

#else

namespace quern::test {
inline constexpr bool kCountsAllocations = false;
}

#endif
