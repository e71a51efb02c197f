// A model that is nothing like GPT-2, made of the same layers: it reads a whole sequence at once and predicts one
// number. Token embeddings without positions, a feed-forward branch, the mean over the sequence, and a linear head with
// squared error. The number to predict is the mean of the sequence's targets.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>

#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/norm.h"
#include "nn/model.h"

namespace quern::nn {

struct RegressorConfig {
  size_t vocabulary = 29, context = 13, width = 24;
  bool train_embedding = true;
};

class Regressor final : public Model {
 public:
  explicit Regressor(const RegressorConfig& config, bool packed = false) : Regressor(build(config), packed) {}

  static Declaration declare(const RegressorConfig& config) { return build(config).first; }

  double forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                          const Member& member = {}) const override {
    const Pass pass{weights(), batch, work, member, 0.0f, &args.gradient, args.watch};
    const double sum = forward(pass);
    if (member.leads()) set_output_gradient(pass, args.scale);
    member.meet();
    layers_.head.backward_input(pass, work.logits.data(), work.dinner.data(), batch.sequences);
    layers_.head.backward_weights(pass, work.head().floats(layers_.pooled), work.logits.data(), batch.sequences);
    member.meet();
    if (member.leads()) spread_gradient(pass);
    member.meet();
    layers_.branch.backward(pass, work.block(0), layers_.norm);
    layers_.norm.backward(pass, work.block(0));
    layers_.embedding.backward(pass);
    return sum;
  }

  double loss(const MicroBatch& batch, Workspace& work, const Member& member = {}) const override {
    return forward({.weights = weights(), .batch = batch, .work = work, .member = member});
  }

 private:
  struct Layers {
    Layers(Declaration& model, const RegressorConfig& config)
        : embedding(model, {.tokens = "tokens",
                            .positions = "",
                            .vocabulary = config.vocabulary,
                            .context = config.context,
                            .width = config.width,
                            .trainable = config.train_embedding}),
          norm(model, model.activations.block, {.name = "norm", .width = config.width, .regions = kNorm1}),
          branch(model, {.expand = "expand",
                         .activation = "act",
                         .contract = "contract",
                         .width = config.width,
                         .inner_width = 3 * config.width,
                         .block = 0}),
          head(model, {.name = "head", .in = config.width, .out = 1, .regions = kOutput, .order = Product::kOutIn}),
          pooled(model.activations.head.add(config.width, kernels::DType::kF32)) {
      model.activations.blocks = 1;
      model.activations.outputs = 1;
      model.columns.push_back({kTargetsColumn, ColumnType::kInt32, config.context});
      model.parameters.lay_out();
    }
    Embedding embedding;
    Norm norm;
    FeedForward branch;
    Linear head;
    SlotId pooled;  // the mean of each sequence, in the first rows
  };
  using Built = std::pair<Declaration, Layers>;

  static Built build(const RegressorConfig& config) {
    Declaration declaration;
    Layers layers(declaration, config);
    return {std::move(declaration), std::move(layers)};
  }
  Regressor(Built built, bool packed) : Model(std::move(built.first), packed), layers_(std::move(built.second)) {}

  size_t width() const { return activations().width; }

  double forward(const Pass& pass) const {
    Workspace& work = pass.work;
    layers_.embedding.forward(pass, work.stream.data());
    layers_.norm.forward(pass, work.block(0), nullptr, work.stream.data());
    pass.member.meet();
    layers_.branch.forward(pass, work.block(0), true);
    if (pass.member.leads()) pool(pass);
    pass.member.meet();
    layers_.head.forward(pass, work.head().floats(layers_.pooled), {work.logits.data()}, pass.batch.sequences);
    pass.member.meet();
    if (pass.member.leads()) set_losses(pass);
    pass.member.meet();
    return sum_of_losses(pass.batch, work);
  }

  void pool(const Pass& pass) const {
    const size_t T = pass.batch.T, C = width();
    for (size_t s = 0; s < pass.batch.sequences; ++s) {
      float* mean = pass.work.head().floats(layers_.pooled) + s * C;
      for (size_t c = 0; c < C; ++c) {
        mean[c] = 0;
        for (size_t i = s * T; i < (s + 1) * T; ++i)
          mean[c] += pass.work.stream[i * C + c] + pass.work.delta[i * C + c];
        mean[c] /= static_cast<float>(T);
      }
    }
  }

  float error(const Pass& pass, size_t s) const {
    const int32_t* targets = pass.batch.columns.ints(kTargetsColumn) + s * pass.batch.T;
    const auto sum = static_cast<float>(std::accumulate(targets, targets + pass.batch.T, 0));
    return pass.work.logits[s] - sum / static_cast<float>(pass.batch.T);
  }

  // In the first row of each sequence.
  void set_losses(const Pass& pass) const {
    std::fill_n(pass.work.losses.begin(), pass.rows(), 0.0f);
    for (size_t s = 0; s < pass.batch.sequences; ++s) {
      pass.work.losses[s * pass.batch.T] = 0.5f * error(pass, s) * error(pass, s);
    }
  }

  void set_output_gradient(const Pass& pass, float scale) const {
    for (size_t s = 0; s < pass.batch.sequences; ++s) pass.work.logits[s] = scale * error(pass, s);
  }

  // From the gradient of the means in work.dinner to that of every row.
  void spread_gradient(const Pass& pass) const {
    const size_t T = pass.batch.T, C = width();
    for (size_t row = pass.rows(); row-- > 0;) {
      for (size_t c = 0; c < C; ++c) {
        pass.work.dx[row * C + c] = pass.work.dinner[row / T * C + c] / static_cast<float>(T);
      }
    }
  }

  Layers layers_;
};

}  // namespace quern::nn
