// clang-format off
// Self-attention of one sequence, causal or bidirectional, by blocks: no T x T matrix is materialized, forward or
// backward.
//
// The numerical contract (promise I6), for query i, the keys j that it sees (all, or j <= i if causal) and
// c = 1 / sqrt(head_dim) rounded to float. A chain is a series of fused multiply-adds from 0 in the order of its index;
// lanes are the 16 virtual lanes of a row reduction. Chains over i run over the queries that see key j.
//   s_ij  = chain over k of q_ik k_jk               p_ij = exp(c * (s_ij - m_i)),  m_i = max over j of s_ij
//   out_i = (chain over j of p_ij v_j) / sum_i      sum_i = lanes over j of p_ij
//                                                   logsumexp_i = c * m_i + log(sum_i)
// Backward uses p_ij = exp(min(fma(c, s_ij, -logsumexp_i), 0)), and:
//   dp_ij = chain over k of dout_ik v_jk            delta_i = lanes over k of dout_ik out_ik
//   ds_ij = p_ij * fma(c, dp_ij, -(c * delta_i))    dq_i = chain over j of ds_ij k_j
//   dv_j  = chain over i of p_ij dout_i             dk_j = chain over i of ds_ij q_i
// Where several heads of queries share keys and values, the chains of dv and dk run over these heads, and over i for
// each of them.
// Dropout multiplies dp_ij, and p_ij where it is multiplied by v or dout, by its scale or by 0. Outputs have no -0.
// Division by the sum is multiplication by its reciprocal; the log is computed in double precision. The result does not
// depend on block size, vector width or threads.
// This holds for finite inputs. A NaN or an infinity in v, k, q or dout also reaches a few rows of the same tile that
// causality would exclude, as 0 * inf: the result is then as invalid as the input, and visibly so.
// clang-format on
#pragma once

#include <cstddef>
#include <span>

#include "kernels/dropout.h"

namespace quern::kernels {

struct AttentionShape {
  size_t T;            // positions
  size_t heads;        // of queries; C = heads * head_dim
  size_t kv_heads;     // of keys and values, a divisor of `heads`: query head h uses number h / (heads / kv_heads)
  size_t head_dim;     // 1 ... kMaxHeadDim
  size_t qkv_stride;   // floats between rows of qkv, at least qkv_width()
  size_t out_stride;   // floats between rows of out (and of dout), at least C
  bool causal = true;  // query i sees keys 0 ... i; otherwise all T

  size_t group() const { return heads / kv_heads; }
  size_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

inline constexpr size_t kMaxHeadDim = 256;

// Floats of scratch that forward and backward need for one call; grows with T * (head_dim + a block of queries), never
// with T * T.
size_t attention_scratch(const AttentionShape& shape) noexcept;

// out (T, C) = softmax(q k^T / sqrt(head_dim)) v over the visible keys for heads [first_head, last_head); overwrites
// those columns. A row of qkv is q (heads, head_dim) | k (kv_heads, head_dim) | v (kv_heads, head_dim). Writes
// logsumexp (heads, T) for backward. Dropout, if its rate is not 0, applies to the probabilities: element (h * T + i) *
// Tp + j of its stream for head h, query i, key j, with Tp = T rounded up to 64. Heads are independent: any split of
// heads between threads gives the same bits. Any alignment, no allocation; scratch.size() >= attention_scratch(shape),
// one per thread.
void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* logsumexp,
                       const Dropout& dropout, size_t first_head, size_t last_head, std::span<float> scratch) noexcept;

// dqkv (T, qkv_width()) = gradient with respect to qkv; overwrites the columns of heads [first_head, last_head), which
// are complete groups: all heads that share keys and values, or none of them. `out` and `logsumexp` are those of
// forward, with the same dropout.
void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* logsumexp,
                        const float* dout, float* dqkv, const Dropout& dropout, size_t first_head, size_t last_head,
                        std::span<float> scratch) noexcept;

}  // namespace quern::kernels
