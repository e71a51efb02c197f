// Attention twice more, one head at a time and with the whole T x T matrix: in scalar float with the kernel's
// own order of operations, which must give its bits, and in double, straight from the formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/attention.h"
#include "support/twin.h"

namespace quern::twin {

// Where row i of one head's q, k, v and out begins.
struct Head {
  const kernels::AttentionShape& shape;
  size_t h;

  size_t q(size_t i) const { return i * shape.qkv_stride + h * shape.head_dim; }
  size_t k(size_t i) const { return i * shape.qkv_stride + (shape.heads + h / shape.group()) * shape.head_dim; }
  size_t v(size_t i) const { return k(i) + shape.kv_heads * shape.head_dim; }
  bool starts_group() const { return h % shape.group() == 0; }  // the first that adds to the gradients of k and v
  size_t out(size_t i) const { return i * shape.out_stride + h * shape.head_dim; }
  size_t seen_by(size_t i) const { return shape.causal ? i + 1 : shape.T; }  // keys
  size_t lse(size_t i) const { return h * shape.T + i; }
  // What dropout multiplies the probability of (i, j) by.
  float multiplier(const kernels::Dropout& dropout, size_t i, size_t j) const {
    const uint64_t element = (h * shape.T + i) * ((shape.T + 63) / 64 * 64) + j;
    const bool saved = dropout.rate == 0.0f || kernels::dropout_word(dropout.stream, element) >= dropout.threshold();
    return saved ? dropout.scale() : 0.0f;
  }
};

// One chain of fused multiply-adds.
inline float dot(const float* a, const float* b, size_t n) {
  float sum = 0.0f;
  for (size_t k = 0; k < n; ++k) sum = std::fma(a[k], b[k], sum);
  return sum;
}

inline float attention_scale(size_t D) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(D))); }

inline void attention_forward(const Head& at, const float* qkv, float* out, float* logsumexp,
                              const kernels::Dropout& dropout) {
  const size_t D = at.shape.head_dim;
  const float scale = attention_scale(D);
  for (size_t i = 0; i < at.shape.T; ++i) {
    std::vector<float> p(at.seen_by(i));
    for (size_t j = 0; j < at.seen_by(i); ++j) p[j] = dot(qkv + at.q(i), qkv + at.k(j), D);
    const float top = *std::max_element(p.begin(), p.end());
    Lanes sum;
    for (size_t j = 0; j < at.seen_by(i); ++j) sum.at(j) += p[j] = twin::exp(scale * (p[j] - top));
    logsumexp[at.lse(i)] = scale * top + static_cast<float>(std::log(static_cast<double>(sum.sum())));
    const float factor = 1.0f / sum.sum();
    for (size_t j = 0; j < at.seen_by(i); ++j) p[j] *= at.multiplier(dropout, i, j);
    for (size_t c = 0; c < D; ++c) {
      float value = 0.0f;
      for (size_t j = 0; j < at.seen_by(i); ++j) value = std::fma(p[j], qkv[at.v(j) + c], value);
      out[at.out(i) + c] = std::fma(factor, value, 0.0f);
    }
  }
}

inline void attention_backward(const Head& at, const float* qkv, const float* out, const float* logsumexp,
                               const float* dout, float* dqkv, const kernels::Dropout& dropout) {
  const size_t T = at.shape.T, D = at.shape.head_dim;
  const float scale = attention_scale(D);
  for (size_t i = 0; i < T; ++i) {
    std::fill_n(dqkv + at.q(i), D, 0.0f);
    for (const size_t row : {at.k(i), at.v(i)}) {
      if (at.starts_group()) std::fill_n(dqkv + row, D, 0.0f);
    }
  }
  // Queries in order, and keys in order for each: so every element of dq, dk and dv is one chain in that order.
  for (size_t i = 0; i < T; ++i) {
    Lanes delta;
    for (size_t c = 0; c < D; ++c) delta.at(c) = std::fma(dout[at.out(i) + c], out[at.out(i) + c], delta.at(c));
    for (size_t j = 0; j < at.seen_by(i); ++j) {
      const float multiplier = at.multiplier(dropout, i, j);
      const float s = dot(qkv + at.q(i), qkv + at.k(j), D);
      const float p = twin::exp(std::min(std::fma(scale, s, -logsumexp[at.lse(i)]), 0.0f));
      const float dp = dot(dout + at.out(i), qkv + at.v(j), D) * multiplier;
      const float ds = p * std::fma(scale, dp, -(scale * delta.sum()));
      for (size_t c = 0; c < D; ++c) {
        float &dq = dqkv[at.q(i) + c], &dk = dqkv[at.k(j) + c], &dv = dqkv[at.v(j) + c];
        dq = std::fma(ds, qkv[at.k(j) + c], dq);
        dk = std::fma(ds, qkv[at.q(i) + c], dk);
        dv = std::fma(p * multiplier, dout[at.out(i) + c], dv);
      }
    }
  }
  for (size_t i = 0; i < T; ++i) {  // no -0
    for (const size_t row : {at.q(i), at.k(i), at.v(i)}) {
      for (size_t c = 0; c < D; ++c) dqkv[row + c] += 0.0f;
    }
  }
}

// Row i of the probabilities in double, before dropout.
inline std::vector<double> probabilities(const Head& at, const std::vector<double>& qkv, size_t i) {
  const size_t D = at.shape.head_dim;
  std::vector<double> p(at.seen_by(i), 0.0);
  for (size_t j = 0; j < at.seen_by(i); ++j) {
    for (size_t c = 0; c < D; ++c) p[j] += qkv[at.q(i) + c] * qkv[at.k(j) + c] / std::sqrt(static_cast<double>(D));
  }
  const double top = *std::max_element(p.begin(), p.end());
  double sum = 0.0;
  for (double& value : p) sum += value = std::exp(value - top);
  for (double& value : p) value /= sum;
  return p;
}

inline void attention_forward(const Head& at, const std::vector<double>& qkv, std::vector<double>& out,
                              const kernels::Dropout& dropout) {
  for (size_t i = 0; i < at.shape.T; ++i) {
    const std::vector<double> p = probabilities(at, qkv, i);
    for (size_t c = 0; c < at.shape.head_dim; ++c) {
      double& value = out[at.out(i) + c] = 0.0;
      for (size_t j = 0; j < at.seen_by(i); ++j)
        value += p[j] * static_cast<double>(at.multiplier(dropout, i, j)) * qkv[at.v(j) + c];
    }
  }
}

// The gradient of softmax by its definition, dS_j = P_j (dP_j - sum_k P_k dP_k): no logsumexp, no delta from out.
inline void attention_backward(const Head& at, const std::vector<double>& qkv, const std::vector<double>& dout,
                               std::vector<double>& dqkv, const kernels::Dropout& dropout) {
  const size_t D = at.shape.head_dim;
  for (size_t i = 0; i < at.shape.T; ++i) {
    const std::vector<double> p = probabilities(at, qkv, i);
    std::vector<double> dp(at.seen_by(i), 0.0);
    double mean = 0.0;
    for (size_t j = 0; j < at.seen_by(i); ++j) {
      const double factor = static_cast<double>(at.multiplier(dropout, i, j));
      for (size_t c = 0; c < D; ++c) {
        dp[j] += factor * dout[at.out(i) + c] * qkv[at.v(j) + c];
        dqkv[at.v(j) + c] += factor * p[j] * dout[at.out(i) + c];
      }
      mean += p[j] * dp[j];
    }
    for (size_t j = 0; j < at.seen_by(i); ++j) {
      const double ds = p[j] * (dp[j] - mean) / std::sqrt(static_cast<double>(D));
      for (size_t c = 0; c < D; ++c) {
        dqkv[at.q(i) + c] += ds * qkv[at.k(j) + c];
        dqkv[at.k(j) + c] += ds * qkv[at.q(i) + c];
      }
    }
  }
}

}  // namespace quern::twin
