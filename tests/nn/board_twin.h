// The board network once more, in double precision and without any of its kernels: loops over the formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "nn/models/board.h"

namespace quern::nn::twin {

class BoardTwin {
 public:
  BoardTwin(const BoardConfig& config, std::vector<double>& parameters)
      : config_(config), model_(BoardModel::declare(config)), p_(parameters) {}

  struct Outputs {
    std::vector<double> logits, outcome;  // of all actions, and of win, draw and loss before the softmax
  };
  struct Losses {
    double policy = 0, value = 0;  // value: with its weight
    double sum() const { return policy + value; }
  };

  // Of position `s` of the batch.
  Outputs outputs(const MicroBatch& batch, size_t s) const {
    const size_t S = config_.squares, C = config_.width;
    const float* planes = batch.columns.floats(kPlanesColumn) + s * config_.planes * S;
    const double *squares = at("squares.weight"), *weight = at("input.weight");
    Matrix x(S * C);
    for (size_t q = 0; q < S; ++q) {
      for (size_t c = 0; c < C; ++c) {
        double& sum = x[q * C + c] = squares[q * C + c];
        for (size_t p = 0; p < config_.planes; ++p) {
          sum += static_cast<double>(planes[p * S + q]) * weight[p * C + c];
        }
      }
    }
    for (size_t layer = 0; layer < config_.layers; ++layer) block("blocks." + std::to_string(layer), x);
    return heads(norm(x, "norm"));
  }

  Losses losses(const MicroBatch& batch) const {
    Losses sum;
    for (size_t s = 0; s < batch.sequences; ++s) {
      const Outputs out = outputs(batch, s);
      sum.policy += cross_entropy(out.logits, batch.columns.floats(kPolicyColumn) + s * config_.actions);
      sum.value +=
          config_.value_weight * cross_entropy(out.outcome, batch.columns.floats(kOutcomeColumn) + s * kOutcomes);
    }
    return sum;
  }

 private:
  using Matrix = std::vector<double>;  // (squares, columns)

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

  Matrix norm(const Matrix& x, const std::string& name) const {
    const size_t C = config_.width;
    const bool centred = config_.norm == NormKind::kLayernorm;
    const double *weight = centred ? at(name + ".weight") : nullptr, *bias = centred ? at(name + ".bias") : nullptr;
    Matrix out(x.size());
    for (size_t row = 0; row < x.size(); row += C) {
      double mean = 0, squares = 0;
      for (size_t c = 0; centred && c < C; ++c) mean += x[row + c] / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) squares += std::pow(x[row + c] - mean, 2) / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) {
        out[row + c] = (x[row + c] - mean) / std::sqrt(squares + config_.norm_epsilon);
        if (centred) out[row + c] = out[row + c] * weight[c] + bias[c];
      }
    }
    return out;
  }

  Matrix linear(const Matrix& x, const std::string& name, size_t in, size_t out) const {
    const double *weight = at(name + ".weight"), *bias = find(name + ".bias");
    Matrix y;
    for (size_t row = 0; row < x.size(); row += in) {
      for (size_t o = 0; o < out; ++o) {
        y.push_back(bias == nullptr ? 0 : bias[o]);
        for (size_t i = 0; i < in; ++i) y.back() += x[row + i] * weight[i * out + o];
      }
    }
    return y;
  }

  void activate(Matrix& x) const {
    for (double& v : x) {
      const double u = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
      v = config_.activation == Activation::kRelu2 ? (v > 0 ? v * v : 0) : 0.5 * v * (1 + std::tanh(u));
    }
  }

  // Every square sees all squares.
  Matrix attention(const Matrix& qkv) const {
    const size_t S = config_.squares, C = config_.width, D = config_.head_dim();
    Matrix out(S * C);
    for (size_t h = 0; h < config_.heads; ++h) {
      for (size_t i = 0; i < S; ++i) {
        std::vector<double> p(S);
        double sum = 0;
        for (size_t j = 0; j < S; ++j) {
          double s = 0;
          for (size_t k = 0; k < D; ++k) s += qkv[i * 3 * C + h * D + k] * qkv[j * 3 * C + C + h * D + k];
          sum += p[j] = std::exp(s / std::sqrt(static_cast<double>(D)));
        }
        for (size_t j = 0; j < S; ++j) {
          for (size_t k = 0; k < D; ++k) out[i * C + h * D + k] += p[j] / sum * qkv[j * 3 * C + 2 * C + h * D + k];
        }
      }
    }
    return out;
  }

  static void add(Matrix& x, const Matrix& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  void block(const std::string& name, Matrix& x) const {
    const size_t C = config_.width, inner = config_.inner();
    const Matrix qkv = linear(norm(x, name + ".norm1"), name + ".attention.qkv", C, 3 * C);
    add(x, linear(attention(qkv), name + ".attention.project", C, C));
    Matrix wide = linear(norm(x, name + ".norm2"), name + ".mlp.expand", C, inner);
    activate(wide);
    add(x, linear(wide, name + ".mlp.contract", inner, C));
  }

  Outputs heads(const Matrix& x) const {
    const size_t S = config_.squares, C = config_.width;
    Outputs out{linear(x, "policy", C, config_.actions_per_square()), {}};
    out.logits.resize(config_.actions);
    Matrix mean(C);
    for (size_t i = 0; i < x.size(); ++i) mean[i % C] += x[i] / static_cast<double>(S);
    Matrix hidden = linear(mean, "value.hidden", C, C);
    activate(hidden);
    out.outcome = linear(hidden, "value.outcome", C, kOutcomes);
    return out;
  }

  static double cross_entropy(const std::vector<double>& z, const float* targets) {
    double sum = 0, loss = 0;
    for (size_t j = 0; j < z.size(); ++j) sum += targets[j] < 0 ? 0 : std::exp(z[j]);
    for (size_t j = 0; j < z.size(); ++j) {
      if (targets[j] >= 0) loss += static_cast<double>(targets[j]) * (std::log(sum) - z[j]);
    }
    return loss;
  }

  BoardConfig config_;
  Declaration model_;
  std::vector<double>& p_;
};

}  // namespace quern::nn::twin
