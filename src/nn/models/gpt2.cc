#include "nn/models/gpt2.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

namespace quern::nn {
namespace {

// Normal with standard deviation 0.02, for projections back into the residual stream 0.02 / sqrt(2 layers).
BlockSpec block_spec(const ModelConfig& config, const std::shared_ptr<const RotaryTable>& rotary, size_t index) {
  const std::string name = "h." + std::to_string(index);
  const size_t C = config.width;
  const double deviation = 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers));
  const Initial residual = config.zero_projections ? Initial::constant(0) : Initial::normal(deviation);
  return {.name = name,
          .norm1 = {.name = name + ".ln_1", .width = C, .regions = kNorm1, .block = index, .kind = config.norm},
          .attention = {.name = name + ".attn",
                        .qkv = name + ".attn.c_attn",
                        .project = name + ".attn.c_proj",
                        .width = C,
                        .heads = config.heads,
                        .block = index,
                        .project_initial = residual,
                        .qk_norm = config.qk_norm,
                        .rotary = rotary},
          .norm2 = {.name = name + ".ln_2", .width = C, .regions = kNorm2, .block = index, .kind = config.norm},
          .feed_forward = {.expand = name + ".mlp.c_fc",
                           .activation = name + ".mlp.act",
                           .contract = name + ".mlp.c_proj",
                           .width = C,
                           .inner_width = 4 * C,
                           .block = index,
                           .kind = config.activation,
                           .contract_initial = residual}};
}

std::shared_ptr<RotaryTable> rotary_of(Declaration& model, const ModelConfig& config) {
  if (config.positions != Positions::kRotary) return nullptr;
  return std::make_shared<RotaryTable>(model, config.context, config.head_dim());
}

Output output_of(Declaration& model, const ModelConfig& config, ParameterId tokens) {
  if (config.tied_output) return {model, tokens, config.logit_cap};
  const OutputSpec spec{.name = "lm_head",
                        .width = config.width,
                        .outputs = config.vocabulary,
                        .initial = config.zero_projections ? Initial::constant(0) : Initial::normal(0.02)};
  return {model, spec, config.logit_cap};
}

}  // namespace

struct Gpt2::Built {
  Declaration declaration;
  Layers layers;
};

Gpt2::Layers::Layers(Declaration& model, const ModelConfig& config)
    : embedding(model, {.tokens = "wte.weight",
                        .positions = config.positions == Positions::kLearned ? "wpe.weight" : "",
                        .vocabulary = config.vocabulary,
                        .context = config.context,
                        .width = config.width,
                        .tokens_initial = Initial::normal(config.embedding_deviation)}),
      rotary(rotary_of(model, config)),
      blocks(model, config.layers, [&](size_t index) { return block_spec(config, rotary, index); }),
      final_norm(model, model.activations.head,
                 {.name = "ln_f", .width = config.width, .regions = kFinalNorm, .kind = config.norm}),
      output(output_of(model, config, embedding.tokens())) {}

Gpt2::Built Gpt2::build(const ModelConfig& config) {
  check(config);
  Declaration declaration(config.storage);
  Layers layers(declaration, config);
  declaration.parameters.lay_out();
  return {std::move(declaration), std::move(layers)};
}

Declaration Gpt2::declare(const ModelConfig& config) { return build(config).declaration; }

Gpt2::Gpt2(const ModelConfig& config, bool packed) : Gpt2(config, build(config), packed) {}

Gpt2::Gpt2(const ModelConfig& config, Built built, bool packed)
    : LanguageModel(config, std::move(built.declaration), packed), layers_(std::move(built.layers)) {
  if (layers_.rotary != nullptr) layers_.rotary->compute();
}

void Gpt2::forward(const Pass& pass) const {
  assert(pass.rows() <= pass.work.rows() && pass.batch.first_position + pass.batch.T <= config().context);
  layers_.embedding.forward(pass, layers_.blocks.input(pass));
  layers_.blocks.forward(pass);
}

void Gpt2::normalise_output(const Pass& pass) const {
  float* stream = pass.work.stream.data();
  layers_.final_norm.forward(pass, pass.work.head(), stream, stream);
  pass.member.meet();
}

double Gpt2::loss(const MicroBatch& batch, Workspace& work, const Member& member) const {
  const Pass pass{weights(), batch, work, member};
  forward(pass);
  normalise_output(pass);
  layers_.output.forward(pass);
  return sum_of_losses(batch, work);
}

void Gpt2::logits(const MicroBatch& batch, float* out, Workspace& work, const Member& member) const {
  const Pass pass{weights(), batch, work, member};
  forward(pass);
  normalise_output(pass);
  layers_.output.logits(pass, {0, pass.rows()}, out);
}

void Gpt2::decode(const MicroBatch& batch, KeyValueCache& cache, bool logits, Workspace& work,
                  const Member& member) const {
  const Pass pass{.weights = weights(), .batch = batch, .work = work, .member = member, .cache = &cache};
  forward(pass);
  if (!logits) return;
  const Range last{pass.rows() - 1, pass.rows()};
  if (member.leads()) layers_.final_norm.forward_rows(pass, work.stream.data(), work.stream.data(), last);
  member.meet();
  layers_.output.logits(pass, last, work.logits.data());
}

double Gpt2::forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                              const Member& member) const {
  assert(work.has_backward());
  const Pass pass{weights(), batch, work, member, config().dropout, &args.gradient, args.watch};
  const size_t n = pass.rows() * config().width;
  forward(pass);
  normalise_output(pass);
  pass.show("ln_f", work.inner.data(), n);
  layers_.output.forward_backward(pass, args.scale);
  pass.show("gradient of ln_f", work.dinner.data(), n);
  const double sum = sum_of_losses(batch, work);
  backward(pass);
  return sum;
}

void Gpt2::backward(const Pass& pass) const {
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
