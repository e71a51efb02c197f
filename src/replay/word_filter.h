// A filter for arrays dominated by one or two values: a mask for each, and the remaining words. Lossless, and 8 to 64
// times smaller on planes of zeros and ones, at several GB/s, which leaves little input for LZ4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::replay {

// Filtered format: for every 64 words a mask (uint64) of those that are not `common`; with a second value, as many
// masks of those that are neither; then these words, packed. The last masks are zero beyond the end.
struct WordFilter {
  size_t word = 1;      // bytes: 1, 2, 4 or 8
  uint64_t common = 0;  // their bits
  uint64_t second = 0;
  bool two = false;

  size_t masks(size_t bytes) const { return (bytes / word + 63) / 64 * (two ? 2 : 1); }
  size_t max_filtered(size_t bytes) const { return masks(bytes) * 8 + bytes; }
};

// The most frequent values in `bytes` (a multiple of `word`), estimated from a sample of a few hundred, and the
// fraction of words that are neither, which tells whether filtering pays off. The same bytes give the same filter.
struct FilterChoice {
  WordFilter filter;
  double rest = 1;
};
FilterChoice choose_filter(const std::byte* raw, size_t bytes, size_t word) noexcept;

// Returns the filtered size; `out` must have room for max_filtered(bytes).
size_t filter_words(const WordFilter& filter, const std::byte* raw, size_t bytes, std::byte* out) noexcept;

// The inverse. False if `in` is not the output of filter_words() for `bytes`: the contents of `raw` are then undefined,
// and nothing outside either array was accessed.
bool unfilter_words(const WordFilter& filter, const std::byte* in, size_t size, std::byte* raw, size_t bytes) noexcept;

}  // namespace quern::replay
