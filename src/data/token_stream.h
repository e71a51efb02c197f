// A random-access sequence of token ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace quern::data {

class TokenStream {
 public:
  TokenStream() = default;
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;
  virtual ~TokenStream() = default;

  virtual uint64_t size() const = 0;

  // out[i] = token at position + i, for i < count. The range must be inside the stream: position + count <= size().
  // Every returned token is in [0, vocabulary); if a file contains another one, throws Error naming the file and the
  // position. Does not allocate. Thread-safe.
  virtual void copy(uint64_t position, size_t count, int32_t* out) const = 0;
};

// Positions begin <= p < end of a stream. The stream must outlive the range.
struct TokenRange {
  const TokenStream* stream = nullptr;
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
};

// Widens count words to int32 and returns the largest, or 0 if count is 0. A single loop that compilers vectorize.
template <typename Word>
Word widen(const Word* words, size_t count, int32_t* out) {
  Word largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max(largest, words[i]);
    out[i] = static_cast<int32_t>(words[i]);
  }
  return largest;
}

}  // namespace quern::data
