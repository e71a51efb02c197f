#include "nn/layers/adapter.h"

#include <cmath>

#include "kernels/vector_ops.h"
#include "nn/layers/products.h"
#include "nn/regions.h"

namespace quern::nn {

using kernels::Layout;

namespace {

// Kaiming's uniform distribution with a = sqrt(5), as PEFT has it: bound 1 / sqrt(in).
Initial initial_a(size_t in) { return Initial::uniform(1.0 / std::sqrt(static_cast<double>(in))); }

}  // namespace

Adapter::Adapter(Declaration& model, const std::string& name, size_t in, size_t out)
    : in_(in),
      out_(out),
      rank_(model.adapters.rank),
      scale_(static_cast<float>(model.adapters.scale())),
      site_{Purpose::kAdapterDropout, model.adapted.size(), static_cast<float>(model.adapters.dropout)} {
  a_ = model.parameters.add({.name = name + std::string(kAdapterA),
                             .shape = {rank_, in_},
                             .initial = initial_a(in_),
                             .decay = true,
                             .product = Product::kOutIn,
                             .hidden = true,
                             .adapter = true});
  b_ = model.parameters.add({.name = name + std::string(kAdapterB),
                             .shape = {out_, rank_},
                             .decay = true,
                             .product = Product::kOutIn,
                             .hidden = true,
                             .adapter = true});
  model.adapted.push_back(name);
  model.activations.need_adapter(rank_, site_.rate > 0.0f ? in_ : 0);
  model.activations.cost.products += static_cast<double>(rank_ * (in_ + out_));
}

double Adapter::flops(const Pass& pass, size_t rows, size_t products) const {
  return static_cast<double>(products) * product_flops(pass, rows, rank_, in_ + out_);
}

const float* Adapter::dropped(const Pass& pass, const float* x) const {
  if (!drops(pass)) return x;
  float* out = pass.work.dropped.data();
  apply_dropout(pass, site_, in_, x, out);
  pass.member.meet();
  return out;
}

void Adapter::scale_part(const Pass& pass, float* values, size_t rows) const {
  pass.member.meet();
  const Range mine = pass.member.part(rows * rank_, 16);
  kernels::scale(values + mine.begin, scale_, mine.size());
  pass.member.meet();
}

void Adapter::reduce(const Pass& pass, const float* x, size_t rows) const {
  const Timed timed(kAdapterForward.of(pass.again), product_flops(pass, rows, rank_, in_));
  pass.member.meet();  // others may still read what the previous adapter left
  const Matrix matrix = pass.weights.matrix(a_);
  gemm_part({.layout = Layout::kNT,
             .M = rows,
             .N = rank_,
             .K = in_,
             .a = {dropped(pass, x), in_},
             .b = {matrix.values, matrix.width},
             .packed_b = matrix.packed_forward,
             .packed_type = matrix.packed_type,
             .c = pass.work.low.data(),
             .c_stride = rank_},
            pass);
  scale_part(pass, pass.work.low.data(), rows);
}

void Adapter::point_to_update(const Pass& pass, kernels::Gemm& product) const {
  const Matrix matrix = pass.weights.matrix(b_);
  product.layout = Layout::kNT;
  product.K = rank_;
  product.a = low(pass);
  product.b = {matrix.values, matrix.width};
  product.packed_b = matrix.packed_forward;
  product.add = true;
}

void Adapter::backward_input(const Pass& pass, const kernels::Operand& dy, float* dx, size_t rows) const {
  const Timed timed(kAdapterInputGradient, flops(pass, rows, 1));
  const Matrix a = pass.weights.matrix(a_), b = pass.weights.matrix(b_);
  gemm_part({.layout = Layout::kNN,
             .M = rows,
             .N = rank_,
             .K = out_,
             .a = dy,
             .b = {b.values, b.width},
             .packed_b = b.packed_backward,
             .packed_type = b.packed_type,
             .c = pass.work.dlow.data(),
             .c_stride = rank_},
            pass);
  scale_part(pass, pass.work.dlow.data(), rows);
  const bool masked = drops(pass);
  float* to = masked ? pass.work.dropped.data() : dx;
  gemm_part({.layout = Layout::kNN,
             .M = rows,
             .N = in_,
             .K = rank_,
             .a = dlow(pass),
             .b = {a.values, a.width},
             .packed_b = a.packed_backward,
             .packed_type = a.packed_type,
             .c = to,
             .c_stride = in_,
             .add = !masked},
            pass);
  if (!masked) return;
  pass.member.meet();
  apply_dropout(pass, site_, in_, to, to);
  pass.member.meet();
  const Range mine = pass.member.part(rows * in_, 16);
  kernels::accumulate(dx + mine.begin, to + mine.begin, mine.size());
}

void Adapter::backward_weights(const Pass& pass, const float* x, const kernels::Operand& dy, size_t rows) const {
  reduce(pass, x, rows);  // recomputed: saving it would cost memory in every block, and this is a tenth of an adapter
  const Timed timed(kAdapterWeightGradient, flops(pass, rows, 1));
  add_product(pass, b_, dy, low(pass), rows);
  pass.member.meet();
  add_product(pass, a_, dlow(pass), {drops(pass) ? pass.work.dropped.data() : x, in_}, rows);
  pass.member.meet();
  pass.show_gradient(b_);
  pass.show_gradient(a_);
}

std::optional<Adapter> make_adapter(Declaration& model, const std::string& name, size_t in, size_t out) {
  if (!model.adapters.covers(name)) return std::nullopt;
  return Adapter(model, name, in, out);
}

}  // namespace quern::nn
