// The model once more, in double precision and without any of its kernels: loops over the formulas.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "nn/models/transformer.h"

namespace quern::nn::twin {

using Matrix = std::vector<double>;  // (T, columns), row-major

class GptTwin {
 public:
  GptTwin(const ModelConfig& config, std::vector<double>& parameters, float dropout)
      : config_(config), model_(declare(config)), p_(parameters), dropout_(dropout) {}

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

  // The values of a parameter.
  const double* at(const std::string& name) const {
    for (const Parameter& parameter : model_.parameters.all()) {
      if (parameter.name == name) return p_.data() + parameter.offset;
    }
    throw std::logic_error(name);
  }

  // Rows of n numbers, divided by the root of their mean square.
  static void rms_norm(double* x, size_t rows, size_t n) {
    for (size_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (size_t i = 0; i < n; ++i) squares += x[r * n + i] * x[r * n + i] / static_cast<double>(n);
      for (size_t i = 0; i < n; ++i) x[r * n + i] /= std::sqrt(squares + 1e-5);
    }
  }

  Matrix norm(const Matrix& x, const std::string& name) const {
    const size_t C = config_.width;
    if (config_.norm == NormKind::kRmsnorm) {
      Matrix out = x;
      rms_norm(out.data(), x.size() / C, C);
      return out;
    }
    const double *weight = at(name + ".weight"), *bias = at(name + ".bias");
    Matrix out(x.size());
    for (size_t t = 0; t * C < x.size(); ++t) {
      double mean = 0, variance = 0;
      for (size_t c = 0; c < C; ++c) mean += x[t * C + c] / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) variance += std::pow(x[t * C + c] - mean, 2) / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) {
        out[t * C + c] = (x[t * C + c] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
      }
    }
    return out;
  }

  Matrix linear(const Matrix& x, const std::string& name, size_t in, size_t out_width) const {
    const double *weight = at(name + ".weight"), *bias = at(name + ".bias");
    const size_t T = x.size() / in;
    Matrix out(T * out_width);
    for (size_t t = 0; t < T; ++t) {
      for (size_t o = 0; o < out_width; ++o) {
        double sum = bias[o];
        for (size_t i = 0; i < in; ++i) sum += x[t * in + i] * weight[i * out_width + o];
        out[t * out_width + o] = sum;
      }
    }
    return out;
  }

  // Normalizes and rotates queries and keys.
  void transform(Matrix& qkv) const {
    const size_t C = config_.width, D = config_.head_dim(), half = D / 2;
    for (size_t t = 0; t * 3 * C < qkv.size(); ++t) {
      double* row = qkv.data() + t * 3 * C;
      if (config_.qk_norm) rms_norm(row, 2 * config_.heads, D);
      for (size_t h = 0; config_.positions == Positions::kRotary && h < 2 * config_.heads; ++h) {
        for (size_t j = 0; j < half; ++j) {
          const double angle =
              static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(D));
          const double x = row[h * D + j], y = row[h * D + half + j];
          row[h * D + j] = x * std::cos(angle) - y * std::sin(angle);
          row[h * D + half + j] = y * std::cos(angle) + x * std::sin(angle);
        }
      }
    }
  }

  double activation(double x) const {
    if (config_.activation == Activation::kRelu2) return x > 0 ? x * x : 0;
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
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
    const std::string name = "h." + std::to_string(layer);
    const size_t C = config_.width;
    Matrix qkv = linear(norm(x, name + ".ln_1"), name + ".attn.c_attn", C, 3 * C);
    transform(qkv);
    Matrix branch = linear(attention(place, qkv, layer), name + ".attn.c_proj", C, C);
    drop_all(place, Purpose::kResidualDropout, layer, branch);
    add(x, branch);
    Matrix wide = linear(norm(x, name + ".ln_2"), name + ".mlp.c_fc", C, 4 * C);
    for (double& v : wide) v = activation(v);
    branch = linear(wide, name + ".mlp.c_proj", 4 * C, C);
    drop_all(place, Purpose::kFeedForwardDropout, layer, branch);
    add(x, branch);
  }

  double sequence_loss(const MicroBatch& batch, size_t s) const {
    const Place place{batch, s};
    const size_t T = batch.T, C = config_.width, V = config_.vocabulary;
    const bool learned = config_.positions == Positions::kLearned;
    const double *tokens = at("wte.weight"), *positions = learned ? at("wpe.weight") : nullptr;
    const double* output = config_.tied_output ? tokens : at("lm_head.weight");
    Matrix x(T * C);
    for (size_t t = 0; t < T; ++t) {
      const size_t token = static_cast<size_t>(batch.columns.ints(kTokensColumn)[s * T + t]);
      for (size_t c = 0; c < C; ++c) {
        x[t * C + c] = tokens[token * C + c] + (learned ? positions[t * C + c] : 0);
      }
    }
    drop_all(place, Purpose::kEmbeddingDropout, 0, x);
    for (size_t layer = 0; layer < config_.layers; ++layer) block(place, layer, x);
    x = norm(x, "ln_f");
    double total = 0;
    for (size_t t = 0; t < T; ++t) {
      const int32_t target = batch.columns.ints(kTargetsColumn)[s * T + t];
      if (target == kernels::kIgnoreTarget) continue;
      double sum = 0, chosen = 0;
      for (size_t v = 0; v < V; ++v) {
        double logit = 0;
        for (size_t c = 0; c < C; ++c) logit += x[t * C + c] * output[v * C + c];
        if (config_.logit_cap > 0) logit = config_.logit_cap * std::tanh(logit / config_.logit_cap);
        sum += std::exp(logit);
        if (static_cast<int32_t>(v) == target) chosen = logit;
      }
      total += std::log(sum) - chosen;
    }
    return total;
  }

  ModelConfig config_;
  Declaration model_;
  std::vector<double>& p_;
  float dropout_;
};

}  // namespace quern::nn::twin
