// Arrays in which two values make up most: a mask for each, and the rest. Lossless, and 8 to 64 times smaller on planes
// of zeros and ones, at several GB/s, which leaves LZ4 little to read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::replay {

// Filtered: for every 64 words a mask (uint64) of those that are not `common`; with a second value, as many masks of
// those that are neither; then these words, packed. The last masks have zeros beyond the end.
struct WordFilter {
  size_t word = 1;      // bytes: 1, 2, 4 or 8
  uint64_t common = 0;  // their bits
  uint64_t second = 0;
  bool two = false;

  size_t masks(size_t bytes) const { return (bytes / word + 63) / 64 * (two ? 2 : 1); }
  size_t max_filtered(size_t bytes) const { return masks(bytes) * 8 + bytes; }
};

// The values that are most frequent in `bytes` (a multiple of `word`), by a look at some hundred of them; and the share
// of the words that are neither, which tells whether filtering is worth it. The same bytes give the same filter.
struct FilterChoice {
  WordFilter filter;
  double rest = 1;
};
FilterChoice choose_filter(const std::byte* raw, size_t bytes, size_t word) noexcept;

// Returns the size; `out` has room for max_filtered(bytes).
size_t filter_words(const WordFilter& filter, const std::byte* raw, size_t bytes, std::byte* out) noexcept;

// Back. False if `in` is not what filter_words makes for `bytes`: `raw` may be anything then, and nothing outside of
// either was touched.
bool unfilter_words(const WordFilter& filter, const std::byte* in, size_t size, std::byte* raw, size_t bytes) noexcept;

}  // namespace quern::replay
