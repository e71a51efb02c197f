#include "nn/models/transformer.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "core/error.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace quern::nn {
namespace {

std::shared_ptr<RotaryTable> rotary_of(Declaration& model, const ModelConfig& config) {
  if (!config.has_rotary()) return nullptr;
  return std::make_shared<RotaryTable>(model, config.positions_limit(), config.head_dim(), config.rotary);
}

// The same for all families.
Output output_of(Declaration& model, const ModelConfig& config, ParameterId tokens) {
  if (config.tied_output) return {model, tokens, config.logit_cap};
  const OutputSpec spec{.name = "lm_head",
                        .width = config.width,
                        .outputs = config.vocabulary,
                        .initial = config.zero_projections ? Initial::constant(0) : Initial::normal(0.02)};
  return {model, spec, config.logit_cap};
}

// Error if a name of `frozen` is part of no parameter's name, or if nothing is left to train.
void freeze(Declaration& model, const ModelConfig& config) {
  ParameterTable& table = model.parameters;
  std::vector<bool> used(config.frozen.size(), false);
  for (size_t i = 0; i < table.all().size(); ++i) {
    const Parameter& parameter = table.all()[i];
    bool frozen = config.adapters.rank > 0 && !parameter.adapter;
    for (size_t f = 0; f < used.size(); ++f) {
      if (!has_part(parameter.name, config.frozen[f])) continue;
      used[f] = true;
      frozen = true;
    }
    if (!frozen) continue;
    table.freeze(static_cast<ParameterId>(i));
    if (parameter.product == Product::kNone) continue;
    ForwardCost& cost = model.activations.cost;
    (parameter.hidden ? cost.frozen_products : cost.frozen_output_products) += static_cast<double>(parameter.size);
  }
  const auto unused = std::ranges::find(used, false);
  if (unused != used.end()) {
    throw Error("[model] train.freeze: expected parts of parameters' names, such as {}, found {}, which is in none",
                table.all().front().name, in_quotes(config.frozen[static_cast<size_t>(unused - used.begin())]));
  }
  if (table.trainable_count() == 0) throw Error("[model] train.freeze: expected something left to train, found none");
}

}  // namespace

TransformerSpec transformer_spec(const ModelConfig& config) {
  return config.is_gpt2() ? gpt2_spec(config) : llama_spec(config);
}

struct Transformer::Built {
  Declaration declaration;
  Layers layers;
};

Transformer::Layers::Layers(Declaration& model, const ModelConfig& config, const TransformerSpec& spec)
    : embedding(model, spec.embedding),
      rotary(rotary_of(model, config)),
      blocks(model, config.layers, [&](size_t index) { return spec.block(index, rotary); }),
      final_norm(model, model.activations.head, spec.final_norm),
      output(output_of(model, config, embedding.tokens())) {}

Transformer::Built Transformer::build(const ModelConfig& config) {
  check(config);
  Declaration declaration(config.storage);
  declaration.adapters = config.adapters;
  Layers layers(declaration, config, transformer_spec(config));
  check_targets(config.adapters, declaration.linears);
  freeze(declaration, config);
  declaration.parameters.lay_out();
  return {std::move(declaration), std::move(layers)};
}

Declaration Transformer::declare(const ModelConfig& config) { return build(config).declaration; }

Transformer::Transformer(const ModelConfig& config, Packing packing) : Transformer(config, build(config), packing) {}

Transformer::Transformer(const ModelConfig& config, Built built, Packing packing)
    : LanguageModel(config, std::move(built.declaration), packing), layers_(std::move(built.layers)) {
  if (layers_.rotary != nullptr) layers_.rotary->compute();
}

void Transformer::forward(const Pass& pass) const {
  assert(pass.rows() <= pass.work.rows() && pass.batch.first_position + pass.batch.T <= config().positions_limit());
  layers_.embedding.forward(pass, layers_.blocks.input(pass));
  layers_.blocks.forward(pass);
}

void Transformer::normalise_output(const Pass& pass) const {
  float* stream = pass.work.stream.data();
  layers_.final_norm.forward(pass, pass.work.head(), stream, stream);
  pass.member.meet();
}

double Transformer::loss(const MicroBatch& batch, Workspace& work, const Member& member) const {
  const Pass pass{weights(), batch, work, member};
  forward(pass);
  normalise_output(pass);
  layers_.output.forward(pass);
  return sum_of_losses(batch, work);
}

void Transformer::logits(const MicroBatch& batch, float* out, Workspace& work, const Member& member) const {
  const Pass pass{weights(), batch, work, member};
  forward(pass);
  normalise_output(pass);
  layers_.output.logits(pass, {0, pass.rows()}, out);
}

void Transformer::decode(const MicroBatch& batch, KeyValueCache& cache, bool logits, Workspace& work,
                         const Member& member) const {
  const Pass pass{.weights = weights(), .batch = batch, .work = work, .member = member, .cache = &cache};
  forward(pass);
  if (!logits) return;
  const Range last{pass.rows() - 1, pass.rows()};
  if (member.leads()) layers_.final_norm.forward_rows(pass, work.stream.data(), work.stream.data(), last);
  member.meet();
  layers_.output.logits(pass, last, work.logits.data());
}

double Transformer::forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                                     const Member& member) const {
  assert(work.has_backward());
  const Pass pass{weights(), batch, work, member, config().dropout, &args.gradient, args.watch};
  const size_t n = pass.rows() * config().width;
  forward(pass);
  normalise_output(pass);
  pass.show(layers_.final_norm.name(), work.inner.data(), n);
  layers_.output.forward_backward(pass, args.scale);
  if (args.watch != nullptr) pass.show("gradient of " + layers_.final_norm.name(), work.dinner.data(), n);
  const double sum = sum_of_losses(batch, work);
  backward(pass);
  return sum;
}

void Transformer::backward(const Pass& pass) const {
  Workspace& work = pass.work;
  const Range mine = pass.member.part(pass.rows() * config().width);
  std::fill_n(work.dx.data() + mine.begin, mine.size(), 0.0f);
  pass.member.meet();
  layers_.final_norm.backward(pass, work.head());
  pass.show("gradient of the last block", work.dx.data(), pass.rows() * config().width);
  layers_.blocks.backward(pass);
  layers_.embedding.backward(pass);
}

}  // namespace quern::nn
