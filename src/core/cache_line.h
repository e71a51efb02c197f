// CPU properties that matter to code that spins or shares memory.
#pragma once

#include <cstddef>
#include <thread>

namespace quern {

// The unit of cache coherence: two threads that write within one line slow each other down even when they write
// different words. 64 bytes on x86 and on nearly every ARM core. A constant rather than
// std::hardware_destructive_interference_size, whose value changes with -mtune and would change memory layouts.
inline constexpr size_t kCacheLine = 64;

// A short pause inside a loop that waits for another core: about 40 ns on Intel since Skylake, 10 ns on AMD.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is a no-op on most ARM cores; isb takes tens of cycles
#else
  std::this_thread::yield();
#endif
}

}  // namespace quern
