#include "nn/layers/attention.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/attention_decode.h"
#include "kernels/convert.h"
#include "kernels/rmsnorm.h"
#include "kernels/rotary.h"
#include "nn/documents.h"

namespace quern::nn {
namespace {

// Calls visit(document, first, last) for each document and range of heads in this member's part.
template <typename Visit>
void for_my_parts(const Pass& pass, size_t heads, Visit visit) {
  const Range mine = pass.member.part(pass.batch.sequences * heads);
  const size_t T = pass.batch.T;
  for (size_t at = mine.begin; at < mine.end;) {
    const size_t s = at / heads, last = std::min(mine.end, (s + 1) * heads);
    for_documents(pass.batch, s * T, (s + 1) * T,
                  [&](const DocumentRows& part) { visit(part, at - s * heads, last - s * heads); });
    at = last;
  }
}

// The documents of a sequence have different masks: the first has that of a sequence without others.
kernels::Dropout dropout_of(const Pass& pass, const DocumentRows& part, size_t block) {
  constexpr size_t kStreams = 64;  // of 1,024 blocks each; the 65th document has the mask of the first
  const size_t layer = block + part.index % kStreams * 1024;
  return dropout_of(pass, Purpose::kAttentionDropout, layer, part.row / pass.batch.T);
}

// The fp32 values of a saved tensor: the tensor itself if it is fp32, otherwise a buffer in work.wide that starts after
// width_before numbers per row.
float* fp32_view(const Pass& pass, const SavedTensor& saved, size_t width_before) {
  if (saved.type == kernels::DType::kF32) return static_cast<float*>(saved.data);
  return pass.work.wide.data() + pass.rows() * width_before;
}

// Saves this member's part of (rows, width) numbers in 16 bits and continues from the rounded values, which backward
// will read. The members synchronize.
void round(const Pass& pass, const SavedTensor& target, float* values, size_t width) {
  const Range rows = pass.member.part(pass.rows());
  const size_t first = rows.begin * width;
  kernels::save_rounded(values + first, static_cast<kernels::Half*>(target.data) + first, target.type,
                        rows.size() * width);
  pass.member.meet();
}

bool in_16_bits(const SavedTensor& saved) { return saved.type != kernels::DType::kF32; }

}  // namespace

// Members are declared in the order of forward, so that parameters are too.
Attention::Attention(Declaration& model, const AttentionSpec& spec)
    : name_(spec.name),
      input_(spec.inputs.size() == 1 ? spec.inputs.front() : spec.input),
      transformed_(name_ + ".qkv"),
      width_(spec.width),
      heads_(spec.heads),
      kv_heads_(spec.kv_heads),
      head_dim_(spec.head_dim),
      block_(spec.block),
      causal_(spec.causal),
      qkv_width_((heads_ + 2 * kv_heads_) * head_dim_),
      out_width_(heads_ * head_dim_),
      inputs_(make_inputs(model, spec)),
      project_(model, {.name = spec.project,
                       .in = out_width_,
                       .out = width_,
                       .regions = kProject,
                       .block = block_,
                       .bias = spec.project_bias,
                       .order = spec.order,
                       .initial = spec.project_initial}),
      site_{Purpose::kResidualDropout, block_},
      rotary_(spec.rotary) {
  if (spec.head_norm) add_head_norm(model, *spec.head_norm);
  plan(model);
}

std::vector<Attention::Input> Attention::make_inputs(Declaration& model, const AttentionSpec& spec) {
  const size_t queries = spec.heads * spec.head_dim, keys = spec.kv_heads * spec.head_dim;
  const bool together = spec.inputs.size() == 1;
  const std::vector<size_t> widths = together ? std::vector{queries + 2 * keys} : std::vector{queries, keys, keys};
  std::vector<Input> inputs;
  size_t first = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    inputs.push_back({Linear(model, {.name = spec.inputs[i],
                                     .in = spec.width,
                                     .out = widths[i],
                                     .regions = kQkv,
                                     .block = spec.block,
                                     .bias = spec.input_bias,
                                     .order = spec.order,
                                     .parts = together ? size_t{3} : size_t{1}}),
                      first});
    first += widths[i];
  }
  return inputs;
}

void Attention::add_head_norm(Declaration& model, const HeadNormSpec& spec) {
  epsilon_ = spec.epsilon;
  reciprocal_ = model.activations.block.add(head_rows(), kernels::DType::kF32);
  if (spec.queries.empty()) return;
  const auto add = [&](const std::string& name, const Range& heads) {
    const ParameterId weight =
        model.parameters.add({.name = name + ".weight", .shape = {head_dim_}, .initial = Initial::constant(1)});
    norms_.push_back({weight, heads});
  };
  add(spec.queries, {0, heads_});
  add(spec.keys, {heads_, head_rows()});
  normal_ = model.activations.block.add(head_rows() * head_dim_, model.activations.storage);
}

void Attention::plan(Declaration& model) {
  ActivationPlan& plan = model.activations;
  saved_qkv_ = plan.block.add(qkv_width_, plan.storage);
  saved_out_ = plan.block.add(out_width_, plan.storage);
  saved_logsumexp_ = plan.block.add(heads_, kernels::DType::kF32);
  plan.need_wide(qkv_width_ + out_width_);  // both in fp32, if they are saved in 16 bits
  plan.attention = shape(0);
  plan.cost.products += static_cast<double>(width_ * qkv_width_ + out_width_ * width_);
  plan.cost.attention_width += static_cast<double>(cost_width());
}

kernels::AttentionShape Attention::shape(size_t T) const {
  return {.T = T,
          .heads = heads_,
          .kv_heads = kv_heads_,
          .head_dim = head_dim_,
          .qkv_stride = qkv_width_,
          .out_stride = out_width_,
          .causal = causal_};
}

float* Attention::fp32_qkv(const Pass& pass, const SavedSet& saved) const {
  return fp32_view(pass, saved[saved_qkv_], 0);
}

float* Attention::fp32_out(const Pass& pass, const SavedSet& saved) const {
  return fp32_view(pass, saved[saved_out_], qkv_width_);
}

// Where the gradient of the attention's output goes: work.dinner, unless heads are wider than the residual stream.
float* Attention::out_gradient(const Pass& pass) const {
  return out_width_ <= width_ ? pass.work.dinner.data() : pass.work.dwide.data() + pass.rows() * qkv_width_;
}

// Queries, keys and values of all rows, side by side.
void Attention::project_in(const Pass& pass, const SavedSet& saved, float* qkv) const {
  const bool round_now = in_16_bits(saved[saved_qkv_]) && !transforms();
  for (const Input& input : inputs_) {
    const SavedTensor target = round_now ? saved[saved_qkv_].at(input.first) : SavedTensor{};
    input.linear.forward(pass, pass.work.inner.data(), {qkv + input.first, target, qkv_width_}, pass.rows());
  }
  pass.member.meet();
}

void Attention::forward(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor &saved_qkv = saved[saved_qkv_], &saved_out = saved[saved_out_];
  float *qkv = fp32_qkv(pass, saved), *out = fp32_out(pass, saved);
  project_in(pass, saved, qkv);
  if (transforms()) {
    pass.show(input_, qkv, pass.rows() * qkv_width_);
    transform(pass, saved, qkv);
  } else {
    pass.show(input_, saved_qkv, pass.rows() * qkv_width_);
  }
  {
    const Timed timed(kAttentionForward.of(pass.again), attention_flops(pass, cost_width(), 2), layer_tag(block_));
    if (pass.cache != nullptr) {
      attend_to_cache(pass, qkv, out);
    } else {
      attend(pass, saved, qkv, out);
    }
    pass.member.meet();
    if (in_16_bits(saved_out)) round(pass, saved_out, out, out_width_);
  }
  pass.show(name_, saved_out, pass.rows() * out_width_);
  project_.forward(pass, out, {pass.work.delta.data()}, pass.rows());
  drop_branch(pass, site_, width_);
}

// Rotates the queries and keys of this member's rows.
template <typename Rotate>
void Attention::rotate(const Pass& pass, float* qkv, Rotate rotate) const {
  if (rotary_ == nullptr) return;
  const kernels::RotaryShape shape{.heads = head_rows(), .head_dim = head_dim_, .stride = qkv_width_};
  const Range mine = pass.member.part(pass.rows());
  for_documents(pass.batch, mine.begin, mine.end, [&](const DocumentRows& part) {
    rotate(shape, rotary_->data(), part.position, qkv + part.row * qkv_width_, part.rows);
  });
}

// Normalizes each head of this member's rows in place.
void Attention::normalize(const Pass& pass, const SavedSet& saved, float* qkv) const {
  const Range mine = pass.member.part(pass.rows());
  const bool save = pass.gradient != nullptr;
  const auto run = [&](size_t row, const Range& heads, const float* weight) {
    const size_t first = row * head_rows() + heads.begin;
    float* x = qkv + row * qkv_width_ + heads.begin * head_dim_;
    kernels::RmsnormSaved target{nullptr, normal_ ? saved[*normal_].type : kernels::DType::kF32,
                                 save ? saved.floats(*reciprocal_) + first : nullptr};
    if (save && normal_) target.normal = saved[*normal_].at(first * head_dim_).data;
    kernels::rmsnorm_forward(x, x, target, heads.size(), head_dim_, {.epsilon = epsilon_, .weight = weight});
  };
  for (size_t row = mine.begin; row < mine.end; ++row) {
    if (norms_.empty()) run(row, {0, head_rows()}, nullptr);
    for (const WeightedNorm& norm : norms_) run(row, norm.heads, pass.weights.at(norm.weight));
  }
}

// Normalizes and rotates queries and keys in place: this member's rows. The members synchronize.
void Attention::transform(const Pass& pass, const SavedSet& saved, float* qkv) const {
  const SavedTensor& target = saved[saved_qkv_];
  {
    const Timed timed(kQueriesKeysForward.of(pass.again), element_bytes(pass, head_rows() * head_dim_, 8),
                      layer_tag(block_));
    if (reciprocal_) normalize(pass, saved, qkv);
    rotate(pass, qkv, kernels::rotary_forward);
    if (in_16_bits(target)) {
      round(pass, target, qkv, qkv_width_);
    } else {
      pass.member.meet();
    }
  }
  pass.show(transformed_, target, pass.rows() * qkv_width_);
}

// work.dwide from the gradient of the transformed queries and keys to that of the projection: this member's rows. A
// rotation keeps scalar products, so without weights the gradient of the norm can be computed before rotating back,
// from the saved rotated values: r (g - n mean(g n)) for n and g rotated is the rotated gradient.
void Attention::transform_backward(const Pass& pass, const SavedSet& saved) const {
  const Timed timed(kQueriesKeysBackward, element_bytes(pass, head_rows() * head_dim_, 12), layer_tag(block_));
  const Range mine = pass.member.part(pass.rows());
  for (size_t row = mine.begin; reciprocal_ && norms_.empty() && row < mine.end; ++row) {
    float* gradient = pass.work.dwide.data() + row * qkv_width_;
    float* normal = fp32_qkv(pass, saved) + row * qkv_width_;
    kernels::rmsnorm_backward({.saved = {normal, kernels::DType::kF32, saved.floats(*reciprocal_) + row * head_rows()},
                               .dout = gradient,
                               .dx = gradient,
                               .add = false},
                              head_rows(), head_dim_);
  }
  rotate(pass, pass.work.dwide.data(), kernels::rotary_backward);
  if (norms_.empty()) return;
  pass.member.meet();
  if (!pass.member.leads()) return;
  for (const WeightedNorm& norm : norms_) normalize_backward(pass, saved, norm);
}

// The gradient through a norm with a weight, in turn. Done by one member, because rows are summed in order.
void Attention::normalize_backward(const Pass& pass, const SavedSet& saved, const WeightedNorm& norm) const {
  const bool trains = pass.parameter(norm.weight).trainable;
  const size_t segment = pass.parameter(norm.weight).first_segment;
  const Turn& turn = pass.batch.turn;
  float* dweight = trains ? pass.gradient->at(norm.weight, turn) : nullptr;
  if (trains) pass.gradient->enter(segment, turn, pass.member);
  if (trains && turn.first) std::fill_n(dweight, head_dim_, 0.0f);
  for (size_t row = 0; row < pass.rows(); ++row) {
    const size_t first = row * head_rows() + norm.heads.begin;
    float* gradient = pass.work.dwide.data() + row * qkv_width_ + norm.heads.begin * head_dim_;
    const SavedTensor normal = saved[*normal_].at(first * head_dim_);
    kernels::rmsnorm_backward({.saved = {normal.data, normal.type, saved.floats(*reciprocal_) + first},
                               .weight = pass.weights.at(norm.weight),
                               .dout = gradient,
                               .dx = gradient,
                               .dweight = dweight,
                               .add = false},
                              norm.heads.size(), head_dim_);
  }
  if (!trains) return;
  pass.gradient->leave(segment, turn);
  pass.show_gradient(norm.weight);
}

void Attention::attend(const Pass& pass, const SavedSet& saved, const float* qkv, float* out) const {
  for_my_parts(pass, heads_, [&](const DocumentRows& part, size_t first, size_t last) {
    kernels::attention_forward(shape(part.rows), qkv + part.row * qkv_width_, out + part.row * out_width_,
                               saved.floats(saved_logsumexp_) + part.row * heads_, dropout_of(pass, part, block_),
                               first, last, pass.work.scratch(pass.member).attention);
  });
}

void Attention::attend_to_cache(const Pass& pass, const float* qkv, float* out) const {
  const kernels::NewPositions positions{pass.cache->shape, qkv, pass.batch.T, pass.batch.first_position};
  float* cache = pass.cache->blocks[block_].data();
  kernels::attention_cache_store(positions, pass.member.part(kv_heads_), cache);
  if (kv_heads_ != heads_) pass.member.meet();  // otherwise a member reads only what it stored
  kernels::attention_decode(positions, pass.member.part(heads_), cache, out, pass.work.scratch(pass.member).attention);
}

// Both tensors from 16 bits into work.wide, for backward.
void Attention::widen(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor &qkv = saved[saved_qkv_], &out = saved[saved_out_];
  if (!in_16_bits(qkv)) return;
  const Timed timed(kWiden, element_bytes(pass, qkv_width_ + out_width_, 4 + kernels::size_of(qkv.type)));
  const auto widen_part = [&](const SavedTensor& tensor, float* to, size_t width) {
    const Range mine = pass.member.part(pass.rows() * width, 16);
    kernels::widen(tensor.type, static_cast<const kernels::Half*>(tensor.data) + mine.begin, to + mine.begin,
                   mine.size());
  };
  widen_part(qkv, fp32_qkv(pass, saved), qkv_width_);
  widen_part(out, fp32_out(pass, saved), out_width_);
  pass.member.meet();
}

void Attention::backward(const Pass& pass, const SavedSet& saved, const Norm& norm) const {
  float *dinner = pass.work.dinner.data(), *dqkv = pass.work.dwide.data();
  const float* d = branch_gradient(pass, site_, width_);
  widen(pass, saved);
  project_.backward_input(pass, d, out_gradient(pass), pass.rows());
  project_.backward_weights(pass, fp32_out(pass, saved), d, pass.rows());
  pass.member.meet();
  backward_attention(pass, saved);
  if (transforms()) {
    pass.member.meet();
    transform_backward(pass, saved);
  }
  norm.forward_again(pass, saved);
  for (const Input& input : inputs_) {
    const LinearGradient dy(dqkv + input.first, qkv_width_);
    input.linear.backward_input(pass, dy, dinner, pass.rows(), input.first > 0);
    input.linear.backward_weights(pass, pass.work.inner.data(), dy, pass.rows());
    pass.member.meet();  // before the next one packs its operand
  }
}

// work.dwide = the gradient of queries, keys and values, from that of the output. Heads that share keys are one part.
void Attention::backward_attention(const Pass& pass, const SavedSet& saved) const {
  const Timed timed(kAttentionBackward, attention_flops(pass, cost_width(), 5), layer_tag(block_));
  const size_t group = heads_ / kv_heads_;
  const float *qkv = fp32_qkv(pass, saved), *out = fp32_out(pass, saved);
  for_my_parts(pass, kv_heads_, [&](const DocumentRows& part, size_t first, size_t last) {
    kernels::attention_backward(shape(part.rows), qkv + part.row * qkv_width_, out + part.row * out_width_,
                                saved.floats(saved_logsumexp_) + part.row * heads_,
                                out_gradient(pass) + part.row * out_width_,
                                pass.work.dwide.data() + part.row * qkv_width_, dropout_of(pass, part, block_),
                                first * group, last * group, pass.work.scratch(pass.member).attention);
  });
}

}  // namespace quern::nn
