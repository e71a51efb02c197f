// The model once more, in double precision and without any of its kernels: loops over the formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/range.h"
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

    // The position of a token in its document.
    size_t position(size_t t) const {
      const int32_t* positions = batch.columns.find_ints(kPositionsColumn);
      return positions == nullptr ? t : static_cast<size_t>(positions[sequence * batch.T + t]);
    }
  };

  // The factor of an element: 0 if it is dropped.
  double drop(const Place& place, Purpose purpose, size_t layer, uint64_t element, float rate) const {
    if (rate == 0.0f) return 1.0;
    const kernels::Dropout dropout{rate,
                                   {place.batch.seed, purpose, static_cast<uint16_t>(layer), place.batch.step,
                                    place.batch.first_sequence + static_cast<uint32_t>(place.sequence)}};
    return kernels::dropout_word(dropout.stream, element) < dropout.threshold() ? 0.0 : 1.0 / (1.0 - rate);
  }

  void drop_all(const Place& place, Purpose purpose, size_t layer, Matrix& x) const {
    for (size_t e = 0; e < x.size(); ++e) x[e] *= drop(place, purpose, layer, e, dropout_);
  }

  // The values of a parameter; null if the model does not have it.
  const double* find(const std::string& name) const {
    for (const Parameter& parameter : model_.parameters.all()) {
      if (parameter.name == name) return p_.data() + parameter.offset;
    }
    return nullptr;
  }
  const double* at(const std::string& name) const {
    if (const double* found = find(name)) return found;
    throw std::logic_error(name);
  }

  // Rows of n numbers, divided by the root of their mean square, times a weight if there is one.
  void rms_norm(double* x, size_t rows, size_t n, const double* weight = nullptr) const {
    for (size_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (size_t i = 0; i < n; ++i) squares += x[r * n + i] * x[r * n + i] / static_cast<double>(n);
      const double root = std::sqrt(squares + config_.norm_epsilon);
      for (size_t i = 0; i < n; ++i) x[r * n + i] *= (weight == nullptr ? 1 : weight[i]) / root;
    }
  }

  Matrix norm(const Matrix& x, const std::string& name) const {
    const size_t C = config_.width;
    if (!config_.is_gpt2() || config_.norm == NormKind::kRmsnorm) {
      Matrix out = x;
      rms_norm(out.data(), x.size() / C, C, find(name + ".weight"));
      return out;
    }
    const double *weight = at(name + ".weight"), *bias = at(name + ".bias");
    Matrix out(x.size());
    for (size_t t = 0; t * C < x.size(); ++t) {
      double mean = 0, variance = 0;
      for (size_t c = 0; c < C; ++c) mean += x[t * C + c] / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) variance += std::pow(x[t * C + c] - mean, 2) / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) {
        out[t * C + c] = (x[t * C + c] - mean) / std::sqrt(variance + config_.norm_epsilon) * weight[c] + bias[c];
      }
    }
    return out;
  }

  // GPT-2 stores matrices as (in, out), the others as (out, in).
  Matrix linear(const Place& place, const Matrix& x, const std::string& name, size_t in, size_t out_width) const {
    const double *weight = at(name + ".weight"), *bias = find(name + ".bias");
    const size_t T = x.size() / in;
    Matrix out(T * out_width);
    for (size_t t = 0; t < T; ++t) {
      for (size_t o = 0; o < out_width; ++o) {
        double sum = bias == nullptr ? 0 : bias[o];
        for (size_t i = 0; i < in; ++i) {
          sum += x[t * in + i] * weight[config_.is_gpt2() ? i * out_width + o : o * in + i];
        }
        out[t * out_width + o] = sum;
      }
    }
    add_adapter(place, x, name, {in, out_width}, out);
    return out;
  }

  struct Sizes {
    size_t in, out;
  };

  // out += s B A drop(x), if the layer has an adapter. Masks are numbered in the order of declaration.
  void add_adapter(const Place& place, const Matrix& x, const std::string& name, Sizes sizes, Matrix& out) const {
    const double *a = find(name + ".lora_A.weight"), *b = find(name + ".lora_B.weight");
    if (a == nullptr) return;
    const AdapterConfig& config = config_.adapters;
    const double rank = static_cast<double>(config.rank);
    const double scale = config.alpha / (config.rank_stabilized ? std::sqrt(rank) : rank);
    const auto found = std::find(model_.adapted.begin(), model_.adapted.end(), name);
    const auto index = static_cast<size_t>(found - model_.adapted.begin());
    for (size_t t = 0; t * sizes.in < x.size(); ++t) {
      for (size_t r = 0; r < config.rank; ++r) {
        double low = 0;
        for (size_t i = 0; i < sizes.in; ++i) {
          const size_t e = t * sizes.in + i;
          const auto rate = static_cast<float>(config.dropout);
          low += a[r * sizes.in + i] * x[e] * drop(place, Purpose::kAdapterDropout, index, e, rate);
        }
        for (size_t o = 0; o < sizes.out; ++o) out[t * sizes.out + o] += scale * low * b[o * config.rank + r];
      }
    }
  }

  // Numbers in a row of queries, of keys (or values), and of all three.
  size_t queries() const { return config_.heads * config_.head_dim(); }
  size_t keys() const { return config_.key_heads() * config_.head_dim(); }
  size_t wide() const { return queries() + 2 * keys(); }

  // Queries, keys and values, side by side.
  Matrix project(const Place& place, const Matrix& x, const std::string& block) const {
    const size_t C = config_.width;
    if (config_.is_gpt2()) return linear(place, x, block + ".attn.c_attn", C, 3 * C);
    const std::string name = block + ".self_attn";
    const Matrix q = linear(place, x, name + ".q_proj", C, queries()),
                 k = linear(place, x, name + ".k_proj", C, keys()), v = linear(place, x, name + ".v_proj", C, keys());
    Matrix qkv;
    for (size_t t = 0; t * C < x.size(); ++t) {
      for (const auto& [part, width] : {std::pair{&q, queries()}, {&k, keys()}, {&v, keys()}}) {
        for (size_t i = 0; i < width; ++i) qkv.push_back((*part)[t * width + i]);
      }
    }
    return qkv;
  }

  // In radians per position, from the definition of each kind of scaling by wave lengths.
  double frequency(size_t j) const {
    const RotaryConfig& rotary = config_.rotary;
    const double plain = std::pow(rotary.base, -2.0 * static_cast<double>(j) / static_cast<double>(config_.head_dim()));
    if (rotary.scaling == RotaryScaling::kNone) return plain;
    if (rotary.scaling == RotaryScaling::kLinear) return plain / rotary.factor;
    const double wave = 2 * std::numbers::pi / plain, context = static_cast<double>(rotary.original_context);
    if (wave < context / rotary.high_frequency) return plain;
    if (wave > context / rotary.low_frequency) return plain / rotary.factor;
    const double smooth = (context / wave - rotary.low_frequency) / (rotary.high_frequency - rotary.low_frequency);
    return (1 - smooth) * plain / rotary.factor + smooth * plain;
  }

  // Normalizes and rotates queries and keys.
  void transform(const Place& place, Matrix& qkv, const std::string& block) const {
    const size_t D = config_.head_dim(), half = D / 2;
    const double* query_norm = find(block + ".self_attn.q_norm.weight");
    for (size_t t = 0; t * wide() < qkv.size(); ++t) {
      double* row = qkv.data() + t * wide();
      if (config_.qk_norm || query_norm != nullptr) {
        rms_norm(row, config_.heads, D, query_norm);
        rms_norm(row + queries(), config_.key_heads(), D, find(block + ".self_attn.k_norm.weight"));
      }
      for (size_t h = 0; config_.has_rotary() && h < config_.heads + config_.key_heads(); ++h) {
        for (size_t j = 0; j < half; ++j) {
          const double angle = static_cast<double>(place.position(t)) * frequency(j);
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
    Matrix out(place.batch.T * queries(), 0.0);
    size_t index = 0;
    for (size_t first = 0, end = 0; first < place.batch.T; first = end, ++index) {
      end = first + 1;
      while (end < place.batch.T && place.position(end) != 0) ++end;
      attend(place, qkv, layer + 1024 * index, {first, end}, out);
    }
    return out;
  }

  // Attention among the rows of one document. `stream` numbers its masks.
  void attend(const Place& place, const Matrix& qkv, size_t stream, Range rows, Matrix& out) const {
    const size_t T = rows.size(), C = queries(), D = config_.head_dim(), Tp = (T + 63) / 64 * 64;
    const double *q = qkv.data() + rows.begin * wide(), *kv = q;
    double* sums = out.data() + rows.begin * C;
    for (size_t h = 0; h < config_.heads; ++h) {
      const size_t key = C + h / (config_.heads / config_.key_heads()) * D, value = key + keys();
      for (size_t i = 0; i < T; ++i) {
        std::vector<double> p(i + 1);
        double sum = 0;
        for (size_t j = 0; j <= i; ++j) {
          double s = 0;
          for (size_t k = 0; k < D; ++k) s += q[i * wide() + h * D + k] * kv[j * wide() + key + k];
          p[j] = std::exp(s / std::sqrt(static_cast<double>(D)));
          sum += p[j];
        }
        for (size_t j = 0; j <= i; ++j) {
          const double share =
              p[j] / sum * drop(place, Purpose::kAttentionDropout, stream, (h * T + i) * Tp + j, dropout_);
          for (size_t k = 0; k < D; ++k) sums[i * C + h * D + k] += share * kv[j * wide() + value + k];
        }
      }
    }
  }

  static void add(Matrix& x, const Matrix& y) {
    for (size_t e = 0; e < x.size(); ++e) x[e] += y[e];
  }

  Matrix feed_forward(const Place& place, const Matrix& x, const std::string& block) const {
    const size_t C = config_.width, inner = config_.inner();
    if (config_.is_gpt2()) {
      Matrix wide = linear(place, x, block + ".mlp.c_fc", C, inner);
      for (double& v : wide) v = activation(v);
      return linear(place, wide, block + ".mlp.c_proj", inner, C);
    }
    Matrix gate = linear(place, x, block + ".mlp.gate_proj", C, inner);
    const Matrix up = linear(place, x, block + ".mlp.up_proj", C, inner);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    return linear(place, gate, block + ".mlp.down_proj", inner, C);
  }

  void block(const Place& place, size_t layer, Matrix& x) const {
    const bool gpt2 = config_.is_gpt2();
    const std::string name = (gpt2 ? "h." : "model.layers.") + std::to_string(layer);
    Matrix qkv = project(place, norm(x, name + (gpt2 ? ".ln_1" : ".input_layernorm")), name);
    transform(place, qkv, name);
    Matrix branch = linear(place, attention(place, qkv, layer), name + (gpt2 ? ".attn.c_proj" : ".self_attn.o_proj"),
                           queries(), config_.width);
    drop_all(place, Purpose::kResidualDropout, layer, branch);
    add(x, branch);
    branch = feed_forward(place, norm(x, name + (gpt2 ? ".ln_2" : ".post_attention_layernorm")), name);
    drop_all(place, Purpose::kFeedForwardDropout, layer, branch);
    add(x, branch);
  }

  double sequence_loss(const MicroBatch& batch, size_t s) const {
    const Place place{batch, s};
    const size_t T = batch.T, C = config_.width, V = config_.vocabulary;
    const bool learned = !config_.has_rotary();
    const double *tokens = at(config_.is_gpt2() ? "wte.weight" : "model.embed_tokens.weight"),
                 *positions = learned ? at("wpe.weight") : nullptr;
    const double* output = config_.tied_output ? tokens : at("lm_head.weight");
    Matrix x(T * C);
    for (size_t t = 0; t < T; ++t) {
      const size_t token = static_cast<size_t>(batch.columns.ints(kTokensColumn)[s * T + t]);
      for (size_t c = 0; c < C; ++c) {
        x[t * C + c] = tokens[token * C + c] + (learned ? positions[place.position(t) * C + c] : 0);
      }
    }
    drop_all(place, Purpose::kEmbeddingDropout, 0, x);
    for (size_t layer = 0; layer < config_.layers; ++layer) block(place, layer, x);
    x = norm(x, config_.is_gpt2() ? "ln_f" : "model.norm");
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
