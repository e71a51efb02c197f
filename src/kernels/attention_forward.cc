#include <cassert>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/attention_scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_forward.cc"
#include "hwy/foreach_target.h"
#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

struct Head {
  ConstRows q, k, v;
  Rows out;
  float* logsumexp;
  size_t index;
  float scale;              // of the scores
  const DropoutMask* mask;  // null without dropout
};

// How many keys a query sees.
size_t SeenBy(const AttentionShape& shape, size_t query) { return shape.causal ? query + 1 : shape.T; }

void DropRow(const AttentionShape& shape, const Head& head, float* p, size_t query) {
  uint64_t group = FirstGroup(shape, head.index, query);
  for (size_t j = 0; j < SeenBy(shape, query); j += kDropoutGroup) DropInPlace(*head.mask, group++, p + j);
}

// Turns scores into unnormalized probabilities, with their sum in scratch.sum. Three loops: within each, no row waits
// for another, and the processor overlaps them. A single loop would wait for each row's maximum, then its exponentials,
// then its log.
void SoftmaxRows(const AttentionShape& shape, const Head& head, const ForwardScratch& scratch, size_t query,
                 size_t queries) {
  const Rows scores = {scratch.scores, scratch.score_stride};
  float* top = head.logsumexp + query;
  for (size_t i = 0; i < queries; ++i) top[i] = MaxOf(scores.row(i), SeenBy(shape, query + i));
  for (size_t i = 0; i < queries; ++i) {
    scratch.sum[i] = ExpRow(scores.row(i), SeenBy(shape, query + i), head.scale, top[i]);
    if (head.mask != nullptr) DropRow(shape, head, scores.row(i), query + i);
  }
  for (size_t i = 0; i < queries; ++i) {
    const float log_sum = static_cast<float>(std::log(static_cast<double>(scratch.sum[i])));
    head.logsumexp[query + i] = head.scale * top[i] + log_sum;
  }
}

void ForwardBlock(const AttentionShape& shape, const Head& head, const ForwardScratch& scratch, size_t query,
                  Ahead& ahead) {
  const size_t D = shape.head_dim;
  const size_t queries = std::min(ForwardScratch::kQueries, shape.T - query);
  const size_t keys = SeenBy(shape, query + queries - 1);
  const Rows out = {scratch.out, scratch.width};
  const auto block_at = [&](size_t key) {
    return Block{query, queries, key, std::min(ForwardScratch::kKeys, keys - key), shape.causal};
  };
  const auto scores_at = [&](size_t key) { return Rows{scratch.scores + key, scratch.score_stride}; };

  for (size_t key = 0; key < keys; key += ForwardScratch::kKeys) {
    MultiplyScores(block_at(key), D, head.q.from(query), {scratch.keys + key * D, ForwardScratch::kKeys},
                   scores_at(key), ahead);
  }
  SoftmaxRows(shape, head, scratch, query, queries);
  for (size_t key = 0; key < keys; key += ForwardScratch::kKeys) {
    MultiplyByRows(block_at(key), D, scores_at(key), head.v.from(key), out, key > 0, ahead);
  }
  for (size_t i = 0; i < queries; ++i) CopyOut(out.row(i), D, 1.0f / scratch.sum[i], head.out.row(query + i));
}

void CopyKeys(const AttentionShape& shape, const Head& head, const ForwardScratch& scratch) {
  for (size_t key = 0; key < shape.T; key += ForwardScratch::kKeys) {
    const size_t keys = std::min(ForwardScratch::kKeys, shape.T - key);
    CopyTransposed(head.k.from(key), keys, shape.head_dim,
                   {scratch.keys + key * shape.head_dim, ForwardScratch::kKeys});
  }
}

// `first`: the keys in scratch are those of another group. `last`: no head follows.
void ForwardHead(const AttentionShape& shape, Head head, const ForwardScratch& scratch, bool first, bool last) {
  Ahead ahead;
  ahead.add(head.out, shape.T, shape.head_dim);
  const bool group_ends = (head.index + 1) % shape.group() == 0;
  if (!last && group_ends) {
    for (const ConstRows& rows : {head.k, head.v}) ahead.add(rows.column(shape.head_dim), shape.T, shape.head_dim);
  }
  if (!last) ahead.add(head.q.column(shape.head_dim), shape.T, shape.head_dim);
  if (first || head.index % shape.group() == 0) CopyKeys(shape, head, scratch);
  head.v = Padded(head.v, shape.T, shape.head_dim, {scratch.values, scratch.width});
  for (size_t query = 0; query < shape.T; query += ForwardScratch::kQueries) {
    ForwardBlock(shape, head, scratch, query, ahead);
  }
}

}  // namespace

void AttentionForward(const AttentionShape& shape, const float* qkv, float* out, float* logsumexp,
                      const Dropout& dropout, size_t first_head, size_t last_head, float* memory) {
  Carver carver(memory);
  const ForwardScratch scratch(shape, carver);
  const DropoutMask mask(dropout);
  const size_t D = shape.head_dim;
  for (size_t h = first_head; h < last_head; ++h) {
    const float* k = qkv + (shape.heads + h / shape.group()) * D;
    ForwardHead(shape,
                {{qkv + h * D, shape.qkv_stride},
                 {k, shape.qkv_stride},
                 {k + shape.kv_heads * D, shape.qkv_stride},
                 {out + h * D, shape.out_stride},
                 logsumexp + h * shape.T,
                 h,
                 ScoreScale(D),
                 dropout.rate > 0.0f ? &mask : nullptr},
                scratch, h == first_head, h + 1 == last_head);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(AttentionForward);

size_t attention_scratch(const AttentionShape& shape) noexcept {
  Carver forward, backward;
  ForwardScratch(shape, forward);
  BackwardScratch(shape, backward);
  return std::max(forward.used(), backward.used());
}

void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* logsumexp,
                       const Dropout& dropout, size_t first_head, size_t last_head, std::span<float> scratch) noexcept {
  assert(shape.head_dim <= kMaxHeadDim && scratch.size() >= attention_scratch(shape));
  HWY_DYNAMIC_DISPATCH(AttentionForward)
  (shape, qkv, out, logsumexp, dropout, first_head, last_head, scratch.data());
}

}  // namespace quern::kernels
#endif
