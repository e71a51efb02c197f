// Code shared by attention's forward, backward and decoding: products of blocks of visible scores, softmax of a
// row, padded copies. Included per target, after vec-inl.h.
#if defined(QUERN_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_ATTENTION_INL_H_
#undef QUERN_KERNELS_ATTENTION_INL_H_
#else
#define QUERN_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/attention_scratch.h"
#include "kernels/philox-inl.h"
#include "kernels/tile-inl.h"
#include "kernels/transpose-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// A row-major matrix.
struct Rows {
  float* data;
  size_t stride;
  float* row(size_t i) const { return data + i * stride; }
  Rows from(size_t i) const { return {row(i), stride}; }
};
struct ConstRows {
  const float* data;
  size_t stride;
  ConstRows(const float* first, size_t floats) : data(first), stride(floats) {}
  ConstRows(const Rows& rows) : data(rows.data), stride(rows.stride) {}
  const float* row(size_t i) const { return data + i * stride; }
  ConstRows from(size_t i) const { return {row(i), stride}; }
  ConstRows column(size_t k) const { return {data + k, stride}; }
};

HWY_INLINE float ScoreScale(size_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

// A block of scores: rows are queries, columns are keys. Query i sees key j where j <= i, or all keys if not causal.
struct Block {
  size_t query, queries;
  size_t key, keys;
  bool causal;

  // How many of the block's keys are visible to the queries before `row`.
  size_t seen_before(size_t row) const {
    const size_t end = query + row;
    return !causal ? keys : end <= key ? 0 : std::min(keys, end - key);
  }
  // The first row that sees key `column`, or `queries`.
  size_t first_row_of(size_t column) const {
    const size_t position = key + column;
    return !causal || position <= query ? 0 : std::min(queries, position - query);
  }
};

// Memory that later steps will read or write, for the tiles to prefetch line by line while they compute (see
// tile-inl.h). A head's rows are short pieces of long ones, which the hardware does not prefetch. Prefetching as many
// lines between the tiles gained nothing. Figures are in decisions/0008.
class Ahead {
 public:
  // Adds the complete lines of `rows` rows. Skips small matrices, whose latency is hidden by the tiles' other work or
  // which are already in L2 (2 to 4 % slower in L2 at T = 128 with heads of 32). Skips large ones too, whose lines
  // would not stay in L2 until needed and which cost little compared with T^2 products (backward at T = 1,024 was 1.5 %
  // slower on AVX2).
  void add(ConstRows matrix, size_t rows, size_t cols) {
    const size_t length = cols / kLine;
    if (length == 0 || rows * cols < kMinFloats || rows * cols > kMaxFloats) return;
    const char* first = reinterpret_cast<const char*>(matrix.data);
    pieces_[size_++] = {first, matrix.stride * sizeof(float), length, 0, rows * length};
  }

  // As many lines as a tile of depth K has time to prefetch.
  HWY_INLINE Lines take(size_t K) {
    if (at_ == size_ || K <= kMinDepth) return {};
    Lines& piece = pieces_[at_];
    Lines taken = piece;
    taken.count = std::min(piece.count, (K - kMinDepth) / kStepsPerLine);
    piece.count -= taken.count;
    piece.first += taken.count;
    for (; piece.first >= piece.length; piece.first -= piece.length) piece.row += piece.stride;
    if (piece.count == 0) ++at_;
    return taken;
  }

 private:
  static constexpr size_t kMinFloats = 32 * 1024 / sizeof(float), kMaxFloats = 64 * 1024 / sizeof(float);
  static constexpr size_t kMaxPieces = 8;  // backward: dk, dv, dq, and out, dout, q, k, v of the next head
  Lines pieces_[kMaxPieces];
  size_t size_ = 0, at_ = 0;
};

// C (M, N) = or += A (M, K) B (K, N) by tiles, for blocks that fit the caches. B's rows must be readable, and C's
// writable, up to N rounded up to a full vector. Columns are distributed evenly: 4 vectors are split 2 + 2, because the
// single vector of 3 + 1 would need a load for every multiply-add.
template <ALayout kLayout>
HWY_INLINE void MultiplyBlock(size_t M, size_t N, TileArgs args, Ahead& ahead) {
  const float* a = args.a;
  float* c = args.c;
  size_t vecs = (N + kN - 1) / kN;
  for (size_t tiles = (vecs + kTileVecs - 1) / kTileVecs; tiles > 0; --tiles) {
    const size_t part = (vecs + tiles - 1) / tiles;
    for (size_t i = 0; i < M; i += kTileRows) {
      args.a = a + i * (kLayout == ALayout::kRows ? args.a_stride : 1);
      args.c = c + i * args.c_stride;
      args.ahead = ahead.take(args.K);
      args.next_c = args.ahead.count > 0 ? args.c : nullptr;
      TileFor<kLayout>(std::min(M - i, kTileRows), part)(args);
    }
    vecs -= part;
    args.b += part * kN;
    c += part * kN;
  }
}

// s (queries, keys) = a (queries, K) b (K, keys), where visible to some row of a tile; the rest is not written.
HWY_INLINE void MultiplyScores(const Block& block, size_t K, ConstRows a, ConstRows b, Rows s, Ahead& ahead) {
  for (size_t i = 0; i < block.queries; i += kTileRows) {
    const size_t rows = std::min(kTileRows, block.queries - i);
    const size_t keys = block.seen_before(i + rows);
    MultiplyBlock<ALayout::kRows>(rows, keys, {K, a.row(i), a.stride, b.data, b.stride, s.row(i), s.stride, false},
                                  ahead);
  }
}

// c (queries, N) = or += s (queries, keys) b (keys, N). s must be 0 where a row does not see a key that another row of
// its tile sees: for finite b, adding 0 * b changes no bit except the sign of a zero, which CopyOut removes.
HWY_INLINE void MultiplyByRows(const Block& block, size_t N, Rows s, ConstRows b, Rows c, bool add, Ahead& ahead) {
  for (size_t i = 0; i < block.queries; i += kTileRows) {
    const size_t rows = std::min(kTileRows, block.queries - i);
    const size_t keys = block.seen_before(i + rows);
    if (keys == 0) continue;  // the first rows may see none of the block's keys
    MultiplyBlock<ALayout::kRows>(rows, N, {keys, s.row(i), s.stride, b.data, b.stride, c.row(i), c.stride, add},
                                  ahead);
  }
}

// c (keys, N) = or += s^T (keys, queries) b (queries, N), with zeros in s as above.
HWY_INLINE void MultiplyByColumns(const Block& block, size_t N, Rows s, ConstRows b, Rows c, bool add, Ahead& ahead) {
  for (size_t j = 0; j < block.keys; j += kTileRows) {
    const size_t rows = std::min(kTileRows, block.keys - j);
    const size_t first = block.first_row_of(j);
    MultiplyBlock<ALayout::kPanel>(
        rows, N, {block.queries - first, s.row(first) + j, s.stride, b.row(first), b.stride, c.row(j), c.stride, add},
        ahead);
  }
}

// x with `fill` in lane n and above.
HWY_INLINE V16 KeepFirst(const V16& x, size_t n, float fill) {
  const V count = hn::Set(d, static_cast<float>(n));
  const V other = hn::Set(d, fill);
  const auto keep = [&](V v, float first)
                        HWY_ATTR { return hn::IfThenElse(hn::Lt(hn::Iota(d, first), count), v, other); };
  V16 r;
  r.p0 = keep(x.p0, 0.0f);
  if constexpr (kParts > 1) r.p1 = keep(x.p1, kN);
  if constexpr (kParts > 2) {
    r.p2 = keep(x.p2, 2 * kN);
    r.p3 = keep(x.p3, 3 * kN);
  }
  return r;
}

// The maximum of n >= 1 values. The order does not affect a maximum, so four chains hide its latency.
HWY_INLINE float MaxOf(const float* HWY_RESTRICT s, size_t n) {
  const size_t last = (n - 1) / kVirtualLanes * kVirtualLanes;
  V16 m0 = KeepFirst(Load16(s + last), n - last, -std::numeric_limits<float>::infinity());
  V16 m1 = m0, m2 = m0, m3 = m0;
  size_t j = 0;
  for (; j + 4 * kVirtualLanes <= last; j += 4 * kVirtualLanes) {
    m0 = Max16(m0, Load16(s + j));
    m1 = Max16(m1, Load16(s + j + kVirtualLanes));
    m2 = Max16(m2, Load16(s + j + 2 * kVirtualLanes));
    m3 = Max16(m3, Load16(s + j + 3 * kVirtualLanes));
  }
  for (; j < last; j += kVirtualLanes) m0 = Max16(m0, Load16(s + j));
  return MaxLane16(Max16(Max16(m0, m1), Max16(m2, m3)));
}

// s[j] = exp(scale * (s[j] - top)) for j < n, followed by at least 16 zeros; returns the sum.
HWY_INLINE float ExpRow(float* HWY_RESTRICT s, size_t n, float scale, float top) {
  const V16 scales = Set16(scale), tops = Set16(top);
  const auto exp_at = [&](size_t j) HWY_ATTR { return ExpBounded16(Mul16(scales, Sub16(Load16(s + j), tops))); };
  const size_t last = (n - 1) / kVirtualLanes * kVirtualLanes;
  V16 sum = Set16(0.0f);
  for (size_t j = 0; j < last; j += kVirtualLanes) {
    const V16 p = exp_at(j);
    Store16(p, s + j);
    sum = Add16(sum, p);
  }
  const V16 p = KeepFirst(exp_at(last), n - last, 0.0f);
  Store16(p, s + last);
  Store16(Set16(0.0f), s + last + kVirtualLanes);
  return Sum16(Add16(sum, p));
}

// dst (rows, cols) = src, with each row padded with zeros to a full line.
HWY_INLINE void CopyPadded(ConstRows src, size_t rows, size_t cols, Rows dst) {
  for (size_t i = 0; i < rows; ++i) {
    size_t k = 0;
    for (; k + kVirtualLanes <= cols; k += kVirtualLanes) Store16(Load16(src.row(i) + k), dst.row(i) + k);
    if (k < cols) Store16(LoadN16(src.row(i) + k, cols - k), dst.row(i) + k);
  }
}

// src (rows, cols) in a form whose rows can be read in full vectors: src itself if possible, otherwise a copy in
// `copy`, whose stride is a multiple of 16, with each row padded with zeros. Also copies if the rows are a multiple of
// a page apart and so share the same cache sets (5 to 10 % faster with 16 heads of 64; 2 to 5 % slower where not
// needed).
HWY_INLINE ConstRows Padded(ConstRows src, size_t rows, size_t cols, Rows copy) {
  constexpr size_t kPage = 4096 / sizeof(float);
  if (cols % kLine == 0 && src.stride % kPage != 0) return src;
  CopyPadded(src, rows, cols, copy);
  return copy;
}

// dst (cols, width) = the transpose of src (rows, cols), zero-padded to a full line: width is dst.stride.
HWY_INLINE void CopyTransposed(ConstRows src, size_t rows, size_t cols, Rows dst) {
  TransposeCopy(src.data, src.stride, rows, cols, dst.data, dst.stride);
  for (size_t k = 0; k < cols; ++k) {
    for (size_t i = rows; i < round_up(rows, kLine); ++i) dst.row(k)[i] = 0.0f;
  }
}

// dst[k] = factor * src[k] + 0 for k < cols: the 0 turns -0 into +0.
HWY_INLINE void CopyOut(const float* HWY_RESTRICT src, size_t cols, float factor, float* HWY_RESTRICT dst) {
  const V16 factors = Set16(factor), zero = Set16(0.0f);
  size_t k = 0;
  for (; k + kVirtualLanes <= cols; k += kVirtualLanes) Store16(MulAdd16(factors, Load16(src + k), zero), dst + k);
  if (k < cols) StoreN16(MulAdd16(factors, Load16(src + k), zero), dst + k, cols - k);
}

// The group of 64 elements at which query i's row of a head's dropout begins.
HWY_INLINE uint64_t FirstGroup(const AttentionShape& shape, size_t head, size_t query) {
  return (uint64_t{head} * shape.T + query) * (round_up(shape.T, kDropoutGroup) / kDropoutGroup);
}

// Applies dropout to the 64 elements at x, in place.
HWY_INLINE void DropInPlace(const DropoutMask& mask, uint64_t group, float* HWY_RESTRICT x) {
  for (size_t part = 0; part < kParts; ++part, x += kN) {
    const DropoutVectors y =
        mask.Apply(group, part, {hn::LoadU(d, x), hn::LoadU(d, x + 16), hn::LoadU(d, x + 32), hn::LoadU(d, x + 48)});
    hn::StoreU(y.v0, d, x);
    hn::StoreU(y.v1, d, x + 16);
    hn::StoreU(y.v2, d, x + 32);
    hn::StoreU(y.v3, d, x + 48);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_ATTENTION_INL_H_
