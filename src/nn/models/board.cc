#include "nn/models/board.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"

namespace quern::nn {
namespace {

NormSpec norm_spec(const BoardConfig& config, const std::string& name, const NormRegions& regions,
                   std::optional<size_t> block = {}) {
  return {.name = name,
          .width = config.width,
          .regions = regions,
          .block = block,
          .kind = config.norm,
          .epsilon = static_cast<float>(config.norm_epsilon),
          .weighted = false};
}

// Initialized like GPT-2.
BlockSpec block_spec(const BoardConfig& config, size_t index) {
  const std::string name = "blocks." + std::to_string(index);
  const Initial residual = Initial::normal(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)));
  return {.name = name,
          .norm1 = norm_spec(config, name + ".norm1", kNorm1, index),
          .attention = {.name = name + ".attention",
                        .inputs = {name + ".attention.qkv"},
                        .project = name + ".attention.project",
                        .width = config.width,
                        .heads = config.heads,
                        .kv_heads = config.heads,
                        .head_dim = config.head_dim(),
                        .block = index,
                        .causal = false,
                        .project_initial = residual},
          .norm2 = norm_spec(config, name + ".norm2", kNorm2, index),
          .feed_forward = {.expand = name + ".mlp.expand",
                           .activation = name + ".mlp.activation",
                           .contract = name + ".mlp.contract",
                           .width = config.width,
                           .inner_width = config.inner(),
                           .block = index,
                           .kind = config.activation,
                           .contract_initial = residual}};
}

}  // namespace

struct BoardModel::Built {
  Declaration declaration;
  Layers layers;
};

BoardModel::Layers::Layers(Declaration& model, const BoardConfig& config)
    : input(model, {.planes = "input",
                    .squares = "squares",
                    .plane_count = config.planes,
                    .square_count = config.squares,
                    .width = config.width}),
      blocks(model, config.layers, [&](size_t index) { return block_spec(config, index); }),
      final_norm(model, model.activations.head, norm_spec(config, "norm", kFinalNorm)),
      policy(model, {.name = "policy", .width = config.width, .squares = config.squares, .actions = config.actions}),
      value(model, {.hidden = "value.hidden",
                    .outcome = "value.outcome",
                    .width = config.width,
                    .squares = config.squares,
                    .activation = config.activation,
                    .weight = static_cast<float>(config.value_weight)}) {}

BoardModel::Built BoardModel::build(const BoardConfig& config) {
  check(config);
  Declaration declaration(config.storage);
  Layers layers(declaration, config);
  declaration.targets_per_sequence = 1;
  declaration.loss_parts = {"policy", "value"};
  declaration.parameters.lay_out();
  return {std::move(declaration), std::move(layers)};
}

Declaration BoardModel::declare(const BoardConfig& config) { return build(config).declaration; }

BoardModel::BoardModel(const BoardConfig& config, Packing packing) : BoardModel(config, build(config), packing) {}

BoardModel::BoardModel(const BoardConfig& config, Built built, Packing packing)
    : Model(std::move(built.declaration), packing), config_(config), layers_(std::move(built.layers)) {}

// To the logits of both heads.
void BoardModel::forward(const Pass& pass) const {
  assert(pass.batch.T == config_.squares && pass.rows() <= pass.work.rows());
  float* stream = pass.work.stream.data();
  layers_.input.forward(pass, layers_.blocks.input(pass));
  layers_.blocks.forward(pass);
  layers_.final_norm.forward(pass, pass.work.head(), stream, stream);
  pass.member.meet();
  pass.show(layers_.final_norm.name(), pass.work.inner.data(), pass.rows() * config_.width);
  layers_.policy.forward(pass);
  layers_.value.forward(pass);
}

void BoardModel::losses(const Pass& pass, float scale) const {
  const Range mine = pass.member.part(pass.batch.sequences);
  const bool gradient = pass.gradient != nullptr;
  float* losses = pass.work.losses.data();
  std::fill(losses + mine.begin * config_.squares, losses + mine.end * config_.squares, 0.0f);
  layers_.policy.losses(pass, mine, scale, gradient);
  layers_.value.losses(pass, mine, scale, gradient);
  pass.member.meet();
  pass.show("loss", losses, pass.rows());
}

double BoardModel::loss(const MicroBatch& batch, Workspace& work, const Member& member) const {
  const Pass pass{weights(), batch, work, member};
  forward(pass);
  losses(pass, 1.0f);
  return sum_of_losses(batch, work);
}

double BoardModel::forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                                    const Member& member) const {
  assert(work.has_backward());
  const Pass pass{weights(), batch, work, member, 0.0f, &args.gradient, args.watch};
  forward(pass);
  losses(pass, args.scale);
  const double sum = sum_of_losses(batch, work);
  backward(pass);
  return sum;
}

void BoardModel::backward(const Pass& pass) const {
  Workspace& work = pass.work;
  const size_t n = pass.rows() * config_.width;
  layers_.policy.backward(pass);
  layers_.value.backward(pass);
  pass.show("gradient of norm", work.dinner.data(), n);
  const Range mine = pass.member.part(n);
  std::fill_n(work.dx.data() + mine.begin, mine.size(), 0.0f);
  pass.member.meet();
  layers_.final_norm.backward(pass, work.head());
  pass.show("gradient of the last block", work.dx.data(), n);
  layers_.blocks.backward(pass);
  layers_.input.backward(pass);
}

void BoardModel::evaluate(const MicroBatch& batch, float* logits, float* outcomes, Workspace& work,
                          const Member& member) const {
  const float* planes = batch.columns.floats(kPlanesColumn);
  for (size_t first = 0; first < batch.sequences; first += work.sequences()) {
    const MicroBatch part{.columns = {{kPlanesColumn, nullptr, planes + first * config_.planes * config_.squares}},
                          .sequences = std::min(work.sequences(), batch.sequences - first),
                          .T = config_.squares};
    const Pass pass{weights(), part, work, member};
    forward(pass);
    const Range mine = member.part(part.sequences);
    layers_.policy.copy_logits(pass, mine, logits + first * config_.actions);
    layers_.value.write_probabilities(pass, mine, outcomes + first * kOutcomes);
    member.meet();
  }
}

namespace {

// Negative entries do not count.
void check_sum(const char* column, size_t position, std::span<const float> shares) {
  size_t count = 0;
  double sum = 0;
  for (const float share : shares) {
    if (share < 0.0f) continue;
    ++count;
    sum += static_cast<double>(share);
  }
  if (count == 0) throw Error("[board] {} of position {}: expected a legal move, found none", column, position);
  if (!(std::abs(sum - 1.0) <= 1e-3)) {
    throw Error("[board] {} of position {}: expected a sum of 1, found {}", column, position, sum);
  }
}

}  // namespace

void check_targets(const BoardConfig& config, const MicroBatch& batch) {
  const float *policy = batch.columns.floats(kPolicyColumn), *outcome = batch.columns.floats(kOutcomeColumn);
  for (size_t s = 0; s < batch.sequences; ++s) {
    check_sum(kPolicyColumn, s, {policy + s * config.actions, config.actions});
    check_sum(kOutcomeColumn, s, {outcome + s * kOutcomes, kOutcomes});
    if (std::any_of(outcome + s * kOutcomes, outcome + (s + 1) * kOutcomes, [](float x) { return x < 0.0f; })) {
      throw Error("[board] {} of position {}: expected 0 or more, found less", kOutcomeColumn, s);
    }
  }
}

}  // namespace quern::nn
