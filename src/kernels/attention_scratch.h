// How attention is divided into blocks, and which part of its scratch each step uses. Not part of the contract.
//
// The sizes can be chosen freely: no chain of operations depends on them (see attention.h). They were measured for
// heads of 64 on AVX2 and AVX-512: the working set of a block should fit in the L1 cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace quern::kernels {

inline constexpr size_t kLine = 16;          // floats per cache line, and in the widest vector
inline constexpr size_t kDropoutGroup = 64;  // elements that dropout draws at a time

constexpr size_t round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Hands out aligned pieces of a scratch buffer, one after another. Without memory it only counts.
class Carver {
 public:
  explicit Carver(float* memory = nullptr)
      : next_(reinterpret_cast<float*>(round_up(reinterpret_cast<uintptr_t>(memory), kLine * sizeof(float)))) {}
  float* take(size_t floats) {
    float* piece = next_ + used_;
    used_ += round_up(floats, kLine);
    return piece;
  }
  size_t used() const { return used_ + kLine; }  // including the maximum cost of alignment

 private:
  float* next_;
  size_t used_ = 0;
};

// One head, forward.
struct ForwardScratch {
  static constexpr size_t kQueries = 48, kKeys = 96;

  ForwardScratch(const AttentionShape& shape, Carver& carver)
      : width(round_up(shape.head_dim, kLine)),
        score_stride(round_up(shape.T, kDropoutGroup) + kLine),
        keys(carver.take(round_up(shape.T, kKeys) * shape.head_dim)),
        values(carver.take(shape.T * width)),
        scores(carver.take(kQueries * score_stride)),
        out(carver.take(kQueries * width)),
        sum(carver.take(kQueries)) {}

  size_t width;         // floats in a padded row of a head
  size_t score_stride;  // T rounded up to full groups, plus a line: an odd number of lines, so that rows do not share
                        // cache sets
  float* keys;          // K^T by blocks of kKeys keys: (blocks, head_dim, kKeys)
  float* values;        // (T, width)
  float* scores;        // (kQueries, score_stride)
  float* out;           // (kQueries, width), not yet divided by the sum
  float* sum;           // (kQueries), sum of a row's exponentials
};

// One head, backward.
struct BackwardScratch {
  static constexpr size_t kQueries = 64, kKeys = 64;
  static_assert(kKeys % kDropoutGroup == 0);
  static constexpr size_t kStride = kKeys + kLine;  // stride of scores: an extra line for zeros

  BackwardScratch(const AttentionShape& shape, Carver& carver)
      : width(round_up(shape.head_dim, kLine)),
        queries(carver.take(shape.T * width)),
        dout(carver.take(shape.T * width)),
        dqueries(carver.take(shape.T * width)),
        delta(carver.take(shape.T)),
        keys(carver.take(kKeys * width)),
        keys_transposed(carver.take(shape.head_dim * kKeys)),
        values_transposed(carver.take(shape.head_dim * kKeys)),
        dkeys(carver.take(kKeys * width)),
        dvalues(carver.take(kKeys * width)),
        p(carver.take(kQueries * kStride)),
        ds(carver.take(kQueries * kStride)) {}

  size_t width;
  float *queries, *dout, *dqueries;            // (T, width)
  float* delta;                                // (T)
  float* keys;                                 // (kKeys, width), of the current block, like the following
  float *keys_transposed, *values_transposed;  // (head_dim, kKeys)
  float *dkeys, *dvalues;                      // (kKeys, width)
  float *p, *ds;                               // (kQueries, kStride)
};

}  // namespace quern::kernels
