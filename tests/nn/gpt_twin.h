// The model once more, in double precision and without any of its kernels: loops over the formulas.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "nn/gpt.h"

namespace quern::twin {

using Matrix = std::vector<double>;  // (T, columns), row-major

class GptTwin {
 public:
  GptTwin(const ModelConfig& config, std::vector<double>& parameters, float dropout)
      : config_(config), layout_(config), p_(parameters), dropout_(dropout) {}

  // The sum of the losses of a micro-batch.
  double loss(const MicroBatch& batch) const {
    double sum = 0;
    for (size_t s = 0; s < batch.sequences; ++s) sum += sequence_loss(batch, s);
    return sum;
  }

 private:
  struct Place {
    const MicroBatch& batch;
    size_t sequence;
  };

  double drop(const Place& place, Purpose purpose, size_t layer, uint64_t element) const {
    if (dropout_ == 0.0f) return 1.0;
    const kernels::Dropout dropout{dropout_,
                                   {place.batch.seed, purpose, static_cast<uint16_t>(layer), place.batch.step,
                                    place.batch.first_sequence + static_cast<uint32_t>(place.sequence)}};
    return kernels::dropout_word(dropout.stream, element) < dropout.threshold() ? 0.0 : 1.0 / (1.0 - dropout_);
  }

  void drop_all(const Place& place, Purpose purpose, size_t layer, Matrix& x) const {
    for (size_t e = 0; e < x.size(); ++e) x[e] *= drop(place, purpose, layer, e);
  }

  Matrix norm(const Matrix& x, const NormSlots& slots) const {
    const size_t C = config_.width;
    Matrix out(x.size());
    for (size_t t = 0; t * C < x.size(); ++t) {
      double mean = 0, variance = 0;
      for (size_t c = 0; c < C; ++c) mean += x[t * C + c] / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) variance += std::pow(x[t * C + c] - mean, 2) / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) {
        out[t * C + c] = (x[t * C + c] - mean) / std::sqrt(variance + 1e-5) * p_[slots.weight + c] + p_[slots.bias + c];
      }
    }
    return out;
  }

  Matrix linear(const Matrix& x, const LinearSlots& slots) const {
    const size_t T = x.size() / slots.in;
    Matrix out(T * slots.out);
    for (size_t t = 0; t < T; ++t) {
      for (size_t o = 0; o < slots.out; ++o) {
        double sum = p_[slots.bias + o];
        for (size_t i = 0; i < slots.in; ++i) sum += x[t * slots.in + i] * p_[slots.weight + i * slots.out + o];
        out[t * slots.out + o] = sum;
      }
    }
    return out;
  }

  Matrix attention(const Place& place, const Matrix& qkv, size_t layer) const {
    const size_t T = place.batch.T, C = config_.width, D = config_.head_dim(), Tp = (T + 63) / 64 * 64;
    Matrix out(T * C, 0.0);
    for (size_t h = 0; h < config_.heads; ++h) {
      for (size_t i = 0; i < T; ++i) {
        std::vector<double> p(i + 1);
        double sum = 0;
        for (size_t j = 0; j <= i; ++j) {
          double s = 0;
          for (size_t k = 0; k < D; ++k) s += qkv[i * 3 * C + h * D + k] * qkv[j * 3 * C + C + h * D + k];
          p[j] = std::exp(s / std::sqrt(static_cast<double>(D)));
          sum += p[j];
        }
        for (size_t j = 0; j <= i; ++j) {
          const double share = p[j] / sum * drop(place, Purpose::kAttentionDropout, layer, (h * T + i) * Tp + j);
          for (size_t k = 0; k < D; ++k) out[i * C + h * D + k] += share * qkv[j * 3 * C + 2 * C + h * D + k];
        }
      }
    }
    return out;
  }

  static void add(Matrix& x, const Matrix& y) {
    for (size_t e = 0; e < x.size(); ++e) x[e] += y[e];
  }

  void block(const Place& place, size_t layer, Matrix& x) const {
    const BlockSlots& slots = layout_.blocks()[layer];
    Matrix branch = linear(attention(place, linear(norm(x, slots.norm1), slots.qkv), layer), slots.project);
    drop_all(place, Purpose::kResidualDropout, layer, branch);
    add(x, branch);
    Matrix wide = linear(norm(x, slots.norm2), slots.expand);
    for (double& v : wide) {
      v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
    }
    branch = linear(wide, slots.contract);
    drop_all(place, Purpose::kFeedForwardDropout, layer, branch);
    add(x, branch);
  }

  double sequence_loss(const MicroBatch& batch, size_t s) const {
    const Place place{batch, s};
    const size_t T = batch.T, C = config_.width, V = config_.vocabulary;
    Matrix x(T * C);
    for (size_t t = 0; t < T; ++t) {
      const size_t token = static_cast<size_t>(batch.tokens[s * T + t]);
      for (size_t c = 0; c < C; ++c) {
        x[t * C + c] = p_[layout_.token_table() + token * C + c] + p_[layout_.position_table() + t * C + c];
      }
    }
    drop_all(place, Purpose::kEmbeddingDropout, 0, x);
    for (size_t layer = 0; layer < config_.layers; ++layer) block(place, layer, x);
    x = norm(x, layout_.final_norm());
    double total = 0;
    for (size_t t = 0; t < T; ++t) {
      const int32_t target = batch.targets[s * T + t];
      if (target == kernels::kIgnoreTarget) continue;
      double sum = 0, chosen = 0;
      for (size_t v = 0; v < V; ++v) {
        double logit = 0;
        for (size_t c = 0; c < C; ++c) logit += x[t * C + c] * p_[layout_.token_table() + v * C + c];
        sum += std::exp(logit);
        if (static_cast<int32_t>(v) == target) chosen = logit;
      }
      total += std::log(sum) - chosen;
    }
    return total;
  }

  ModelConfig config_;
  ParameterLayout layout_;
  std::vector<double>& p_;
  float dropout_;
};

}  // namespace quern::twin
