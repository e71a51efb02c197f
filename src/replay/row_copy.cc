#include "replay/row_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// Readers copy rows that may be overwritten meanwhile, and check afterwards whether they were. C++ defines this for
// atomics only, so the portable version copies relaxed atomic words; tsan builds use it too. Otherwise, on x86-64, rows
// are written with SSE2 vectors, which every such machine has, and read with memcpy. These are not atomics to the
// compiler, so it must neither drop nor repeat a load, which it has no reason to do, and nothing moves across the
// callers' fences.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define QUERN_ROWS_BY_VECTORS 1
#else
#define QUERN_ROWS_BY_VECTORS 0
#endif

namespace quern::replay {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kLine = 64;

size_t bytes_to_boundary(const std::byte* at, size_t boundary, size_t max) {
  return std::min<size_t>(-reinterpret_cast<uintptr_t>(at) % boundary, max);
}

template <typename T>
T load_shared(const std::byte* at) noexcept {
  T value;
  __atomic_load(reinterpret_cast<const T*>(at), &value, __ATOMIC_RELAXED);
  return value;
}

template <typename T>
void store_shared(std::byte* at, const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(value));
  __atomic_store(reinterpret_cast<T*>(at), &value, __ATOMIC_RELAXED);
}

void words_to_row(std::byte* row, const std::byte* from, size_t bytes) {
  size_t i = 0;
  for (const size_t head = bytes_to_boundary(row, kWord, bytes); i < head; ++i)
    store_shared<uint8_t>(row + i, from + i);
  for (; i + kWord <= bytes; i += kWord) store_shared<uint64_t>(row + i, from + i);
  for (; i < bytes; ++i) store_shared<uint8_t>(row + i, from + i);
}

#if QUERN_ROWS_BY_VECTORS

struct Line {
  __m128i a, b, c, d;
};

Line load_line(const std::byte* at) {
  const auto* const p = reinterpret_cast<const __m128i*>(at);
  return {_mm_loadu_si128(p), _mm_loadu_si128(p + 1), _mm_loadu_si128(p + 2), _mm_loadu_si128(p + 3)};
}

void store_line(std::byte* at, const Line& line) {
  auto* const p = reinterpret_cast<__m128i*>(at);
  _mm_storeu_si128(p, line.a);
  _mm_storeu_si128(p + 1, line.b);
  _mm_storeu_si128(p + 2, line.c);
  _mm_storeu_si128(p + 3, line.d);
}

void stream_line(std::byte* at, const Line& line) {
  auto* const p = reinterpret_cast<__m128i*>(at);
  _mm_stream_si128(p, line.a);
  _mm_stream_si128(p + 1, line.b);
  _mm_stream_si128(p + 2, line.c);
  _mm_stream_si128(p + 3, line.d);
}

// Bypasses the caches for full lines only: a partial line would have to be read first.
void stream_to_row(std::byte* row, const std::byte* from, size_t bytes) {
  size_t i = bytes_to_boundary(row, kLine, bytes);
  words_to_row(row, from, i);
  for (; i + kLine <= bytes; i += kLine) stream_line(row + i, load_line(from + i));
  words_to_row(row + i, from + i, bytes - i);
  _mm_sfence();  // non-temporal stores are not ordered, and the word that marks the row complete must come after them
}

void lines_to_row(std::byte* row, const std::byte* from, size_t bytes) {
  size_t i = 0;
  for (; i + kLine <= bytes; i += kLine) store_line(row + i, load_line(from + i));
  words_to_row(row + i, from + i, bytes - i);
}

#else

void words_from_row(std::byte* to, const std::byte* row, size_t bytes) {
  size_t i = 0;
  for (const size_t head = bytes_to_boundary(row, kWord, bytes); i < head; ++i) to[i] = load_shared<std::byte>(row + i);
  for (; i + kWord <= bytes; i += kWord) {
    const auto word = load_shared<uint64_t>(row + i);
    std::memcpy(to + i, &word, kWord);
  }
  for (; i < bytes; ++i) to[i] = load_shared<std::byte>(row + i);
}

#endif

}  // namespace

// GB/s for rows written one after another by one core of a 2.3 GHz Xeon (Sapphire Rapids), through the cache /
// bypassing it:
// clang-format off
//   rows of    512 B    2 KiB     4 KiB     16 KiB    64 KiB   in a ring of 1 GiB
//             6.7/2.6  7.0/7.2   7.1/10.5  7.2/15.2  7.7/17.8   (memcpy: 7.1  7.4  8.0  9.2  9.7)
//   rings of   1 MiB      8 MiB      16 MiB     32 MiB    128 MiB   with rows of 16 KiB
//             26.3/17.2  17.8/16.9  16.1/16.6  9.7/16.3  7.8/17.0
// clang-format on
// A row that bypasses the cache costs a fence of 0.2 us.
Through best_way(size_t row_bytes, uint64_t ring_bytes) noexcept {
  constexpr size_t kRow = 4096;
  constexpr uint64_t kRing = uint64_t{32} << 20;
  return row_bytes >= kRow && ring_bytes >= kRing ? Through::kMemory : Through::kCache;
}

void copy_to_row(std::byte* row, const std::byte* from, size_t bytes, [[maybe_unused]] Through way) noexcept {
#if QUERN_ROWS_BY_VECTORS
  if (way == Through::kMemory) return stream_to_row(row, from, bytes);
  lines_to_row(row, from, bytes);
#else
  words_to_row(row, from, bytes);
#endif
}

// 256 random rows of 49,924 bytes from a ring of 1 GB on that machine, with the next row's first lines prefetched:
// memcpy 1.27 ms, SSE2 vectors 1.37 ms, since memcpy uses an instruction that does not read the lines it overwrites.
void copy_from_row(std::byte* to, const std::byte* row, size_t bytes) noexcept {
#if QUERN_ROWS_BY_VECTORS
  std::memcpy(to, row, bytes);
#else
  words_from_row(to, row, bytes);
#endif
}

}  // namespace quern::replay
