#include <cassert>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/attention_scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_backward.cc"
#include "hwy/foreach_target.h"
#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

struct Head {
  ConstRows q, k, v, out, dout;
  Rows dq, dk, dv;
  const float* logsumexp;
  size_t index;
  float scale;              // of the scores
  const DropoutMask* mask;  // null without dropout
};

// The dot product of two rows in 16 virtual lanes.
HWY_INLINE float Dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t n) {
  V16 sum = Set16(0.0f);
  size_t k = 0;
  for (; k + kVirtualLanes <= n; k += kVirtualLanes) sum = MulAdd16(Load16(a + k), Load16(b + k), sum);
  if (k < n) sum = MulAdd16(LoadN16(a + k, n - k), LoadN16(b + k, n - k), sum);
  return Sum16(sum);
}

// Constants that turn a row of scores into probabilities, and dP into dS.
struct RowConstants {
  float scale, logsumexp, delta;
  const float* multipliers;  // of dropout, or null
};

// min(x, 0), but NaN for NaN, which Min does not guarantee. A probability is at most 1, however logsumexp was rounded.
HWY_INLINE V16 AtMostZero(const V16& x) {
  return Map([](V v) HWY_ATTR { return hn::IfThenZeroElse(hn::Gt(v, hn::Zero(d)), v); }, x);
}

// From scores s and dP to P after dropout (in s) and dS (in dp), for the n keys visible to the row, followed by at
// least 16 zeros.
template <bool kDropout>
HWY_INLINE void RowGradient(float* HWY_RESTRICT s, float* HWY_RESTRICT dp, size_t n, const RowConstants& row) {
  const V16 scale = Set16(row.scale), shift = Set16(-row.logsumexp), centre = Set16(-(row.scale * row.delta));
  const auto at = [&](size_t j, auto keep) HWY_ATTR {
    const V16 p = ExpBounded16(AtMostZero(MulAdd16(scale, Load16(s + j), shift)));
    const V16 factor = kDropout ? Load16(row.multipliers + j) : Set16(1.0f);
    const V16 dp_kept = kDropout ? Mul16(Load16(dp + j), factor) : Load16(dp + j);
    Store16(keep(kDropout ? Mul16(p, factor) : p), s + j);
    Store16(keep(Mul16(p, MulAdd16(scale, dp_kept, centre))), dp + j);
  };
  const size_t last = (n - 1) / kVirtualLanes * kVirtualLanes;
  for (size_t j = 0; j < last; j += kVirtualLanes) at(j, [](const V16& x) HWY_ATTR { return x; });
  at(last, [&](const V16& x) HWY_ATTR { return KeepFirst(x, n - last, 0.0f); });
  Store16(Set16(0.0f), s + last + kVirtualLanes);
  Store16(Set16(0.0f), dp + last + kVirtualLanes);
}

void GradientRows(const AttentionShape& shape, const Head& head, const BackwardScratch& scratch, const Block& block) {
  for (size_t i = 0; i < block.queries; ++i) {
    const size_t position = block.query + i, n = block.seen_before(i + 1);
    float *s = scratch.p + i * BackwardScratch::kStride, *dp = scratch.ds + i * BackwardScratch::kStride;
    RowConstants row = {head.scale, head.logsumexp[position], scratch.delta[position], nullptr};
    if (head.mask == nullptr) {
      RowGradient<false>(s, dp, n, row);
    } else {
      HWY_ALIGN float multipliers[BackwardScratch::kKeys];
      std::fill(std::begin(multipliers), std::end(multipliers), 1.0f);
      uint64_t group = FirstGroup(shape, head.index, position) + block.key / kDropoutGroup;
      for (size_t j = 0; j < n; j += kDropoutGroup) DropInPlace(*head.mask, group++, multipliers + j);
      row.multipliers = multipliers;
      RowGradient<true>(s, dp, n, row);
    }
  }
}

// Whether the head is the first of those that share its keys and values: the gradients of these start from it.
bool StartsGroup(const AttentionShape& shape, const Head& head) { return head.index % shape.group() == 0; }

// The first query of a block that sees the block of keys from `key` on.
size_t FirstQuery(const AttentionShape& shape, size_t key) { return shape.causal ? key : 0; }

// Adds one block's contribution to the gradients; k is the rows of its keys.
void BackwardBlock(const AttentionShape& shape, const Head& head, const BackwardScratch& scratch, ConstRows k,
                   const Block& block, Ahead& ahead) {
  const size_t D = shape.head_dim, width = scratch.width;
  const Rows p = {scratch.p, BackwardScratch::kStride}, ds = {scratch.ds, BackwardScratch::kStride};
  const ConstRows q = head.q.from(block.query), dout = head.dout.from(block.query);

  MultiplyScores(block, D, q, {scratch.keys_transposed, BackwardScratch::kKeys}, p, ahead);
  MultiplyScores(block, D, dout, {scratch.values_transposed, BackwardScratch::kKeys}, ds, ahead);
  GradientRows(shape, head, scratch, block);
  const bool add = block.query != FirstQuery(shape, block.key) || !StartsGroup(shape, head);
  MultiplyByColumns(block, D, p, dout, {scratch.dvalues, width}, add, ahead);
  MultiplyByColumns(block, D, ds, q, {scratch.dkeys, width}, add, ahead);
  MultiplyByRows(block, D, ds, k, {scratch.dqueries + block.query * width, width}, block.key > 0, ahead);
}

void BackwardKeys(const AttentionShape& shape, const Head& head, const BackwardScratch& scratch, size_t key,
                  Ahead& ahead) {
  const size_t D = shape.head_dim, width = scratch.width;
  const size_t keys = std::min(BackwardScratch::kKeys, shape.T - key);
  const ConstRows k = Padded(head.k.from(key), keys, D, {scratch.keys, width});
  CopyTransposed(k, keys, D, {scratch.keys_transposed, BackwardScratch::kKeys});
  CopyTransposed(head.v.from(key), keys, D, {scratch.values_transposed, BackwardScratch::kKeys});
  if (!StartsGroup(shape, head)) {  // continue from the sums of the heads before
    CopyPadded(head.dk.from(key), keys, D, {scratch.dkeys, width});
    CopyPadded(head.dv.from(key), keys, D, {scratch.dvalues, width});
  }
  for (size_t query = FirstQuery(shape, key); query < shape.T; query += BackwardScratch::kQueries) {
    const size_t queries = std::min(BackwardScratch::kQueries, shape.T - query);
    BackwardBlock(shape, head, scratch, k, {query, queries, key, keys, shape.causal}, ahead);
  }
  for (size_t j = 0; j < keys; ++j) {
    CopyOut(scratch.dkeys + j * width, D, 1.0f, head.dk.row(key + j));
    CopyOut(scratch.dvalues + j * width, D, 1.0f, head.dv.row(key + j));
  }
}

void BackwardHead(const AttentionShape& shape, Head head, const BackwardScratch& scratch, bool last) {
  const size_t T = shape.T, D = shape.head_dim, width = scratch.width;
  Ahead ahead;
  for (const Rows& rows : {head.dk, head.dv, head.dq}) ahead.add(rows, T, D);
  if (!last) {
    for (const ConstRows& rows : {head.out, head.dout, head.q}) ahead.add(rows.column(D), T, D);
  }
  if (!last && (head.index + 1) % shape.group() == 0) {
    for (const ConstRows& rows : {head.k, head.v}) ahead.add(rows.column(D), T, D);
  }
  head.q = Padded(head.q, T, D, {scratch.queries, width});
  head.dout = Padded(head.dout, T, D, {scratch.dout, width});
  for (size_t i = 0; i < T; ++i) scratch.delta[i] = Dot(head.dout.row(i), head.out.row(i), D);
  for (size_t key = 0; key < T; key += BackwardScratch::kKeys) BackwardKeys(shape, head, scratch, key, ahead);
  for (size_t i = 0; i < T; ++i) CopyOut(scratch.dqueries + i * width, D, 1.0f, head.dq.row(i));
}

}  // namespace

void AttentionBackward(const AttentionShape& shape, const float* qkv, const float* out, const float* logsumexp,
                       const float* dout, float* dqkv, const Dropout& dropout, size_t first_head, size_t last_head,
                       float* memory) {
  Carver carver(memory);
  const BackwardScratch scratch(shape, carver);
  const DropoutMask mask(dropout);
  const size_t D = shape.head_dim, values = shape.kv_heads * D;  // from keys to values
  for (size_t h = first_head; h < last_head; ++h) {
    const size_t query = h * D, key = (shape.heads + h / shape.group()) * D;
    BackwardHead(shape,
                 {{qkv + query, shape.qkv_stride},
                  {qkv + key, shape.qkv_stride},
                  {qkv + key + values, shape.qkv_stride},
                  {out + h * D, shape.out_stride},
                  {dout + h * D, shape.out_stride},
                  {dqkv + query, shape.qkv_stride},
                  {dqkv + key, shape.qkv_stride},
                  {dqkv + key + values, shape.qkv_stride},
                  logsumexp + h * shape.T,
                  h,
                  ScoreScale(D),
                  dropout.rate > 0.0f ? &mask : nullptr},
                 scratch, h + 1 == last_head);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(AttentionBackward);

void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* logsumexp,
                        const float* dout, float* dqkv, const Dropout& dropout, size_t first_head, size_t last_head,
                        std::span<float> scratch) noexcept {
  assert(shape.head_dim <= kMaxHeadDim && scratch.size() >= attention_scratch(shape));
  assert(first_head % shape.group() == 0 && last_head % shape.group() == 0);
  HWY_DYNAMIC_DISPATCH(AttentionBackward)
  (shape, qkv, out, logsumexp, dout, dqkv, dropout, first_head, last_head, scratch.data());
}

}  // namespace quern::kernels
#endif
