#include "nn/layers/linear.h"

#include <algorithm>
#include <cassert>

#include "kernels/column_sums.h"

namespace quern::nn {

using kernels::Epilogue;
using kernels::Gemm;
using kernels::Layout;

Linear::Linear(Declaration& model, const LinearSpec& spec)
    : name_(spec.name),
      in_(spec.in),
      out_(spec.out),
      order_(spec.order),
      regions_(&spec.regions),
      tag_(layer_tag(spec.block)) {
  const bool in_out = spec.order == Product::kInOut;
  weight_ = model.parameters.add({.name = name_ + ".weight",
                                  .shape = {in_out ? in_ : out_, in_out ? out_ : in_},
                                  .initial = spec.initial,
                                  .decay = true,
                                  .trainable = spec.trainable,
                                  .product = spec.order,
                                  .hidden = spec.hidden,
                                  .parts = spec.parts});
  if (spec.hidden) {
    model.linears.push_back(name_);
    adapter_ = make_adapter(model, name_, in_, out_);
  }
  if (spec.bias) {
    bias_ = model.parameters.add({.name = name_ + ".bias", .shape = {out_}, .trainable = spec.trainable});
  }
}

Linear::Linear(Declaration& model, ParameterId table, const LinearRegions& regions)
    : name_(model.parameters[table].name),
      in_(model.parameters[table].shape[1]),
      out_(model.parameters[table].shape[0]),
      order_(Product::kOutIn),
      weight_(table),
      regions_(&regions),
      tag_(Timed::kNoLayer) {
  model.parameters.use_in_product(table, order_);
}

void Linear::run_forward(const Pass& pass, const float* x, const LinearOut& out, size_t rows, Epilogue epilogue) const {
  const Timed timed(regions_->forward.of(pass.again), product_flops(pass, rows, in_, out_), tag_);
  const Matrix matrix = pass.weights.matrix(weight_);
  Gemm product{.layout = order_ == Product::kInOut ? Layout::kNN : Layout::kNT,
               .M = rows,
               .N = out_,
               .K = in_,
               .a = {x, in_},
               .b = {matrix.values, matrix.width},
               .packed_b = matrix.packed_forward,
               .packed_type = matrix.packed_type,
               .c = out.y,
               .c_stride = out.stride == 0 ? out_ : out.stride};
  if (adapter_) {
    adapter_->reduce(pass, x, rows);
    gemm_part(product, pass);
    adapter_->point_to_update(pass, product);
  }
  product.epilogue = epilogue;
  product.bias = bias_ ? pass.weights.at(*bias_) : nullptr;
  product.saved = out.saved;
  gemm_part(product, pass);
}

void Linear::forward(const Pass& pass, const float* x, const LinearOut& out, size_t rows) const {
  run_forward(pass, x, out, rows, bias_ ? Epilogue::kBias : Epilogue::kNone);
}

void Linear::forward_activated(const Pass& pass, const float* x, const LinearOut& out, size_t rows,
                               Activation activation) const {
  assert(bias_);
  run_forward(pass, x, out, rows, activation == Activation::kGelu ? Epilogue::kBiasGelu : Epilogue::kBiasRelu2);
}

void Linear::backward_input(const Pass& pass, const LinearGradient& dy, float* dx, size_t rows, bool add) const {
  const Timed timed(regions_->input_gradient, product_flops(pass, rows, in_, out_), tag_);
  const Matrix matrix = pass.weights.matrix(weight_);
  gemm_part({.layout = order_ == Product::kInOut ? Layout::kNT : Layout::kNN,
             .M = rows,
             .N = in_,
             .K = out_,
             .a = operand(dy),
             .b = {matrix.values, matrix.width},
             .packed_b = matrix.packed_backward,
             .packed_type = matrix.packed_type,
             .c = dx,
             .c_stride = in_,
             .add = add},
            pass);
  if (adapter_) adapter_->backward_input(pass, operand(dy), dx, rows);
}

void Linear::backward_weights(const Pass& pass, const float* x, const LinearGradient& dy, size_t rows,
                              const TurnEnds& ends) const {
  const Parameter& weight = pass.parameter(weight_);
  const Timed timed(regions_->weight_gradient, weight.trainable ? product_flops(pass, rows, in_, out_) : 0.0, tag_);
  if (weight.trainable) {
    if (order_ == Product::kInOut) {
      add_product(pass, weight_, {x, in_}, operand(dy), rows, ends);
    } else {
      add_product(pass, weight_, operand(dy), {x, in_}, rows, ends);
    }
    if (ends.last) pass.show_gradient(weight_);
  }
  if (adapter_) adapter_->backward_weights(pass, x, operand(dy), rows);
  assert(!bias_ || (ends.first && ends.last));  // nothing needs a bias that is summed over several calls
  if (bias_ && pass.parameter(*bias_).trainable && pass.member.last()) add_bias(pass, operand(dy), rows);
}

void Linear::add_bias(const Pass& pass, const kernels::Operand& dy, size_t rows) const {
  const size_t segment = pass.parameter(*bias_).first_segment;
  const Turn& turn = pass.batch.turn;
  float* bias = pass.gradient->at(*bias_, turn);
  pass.gradient->enter(segment, turn, pass.member);
  if (turn.first) std::fill_n(bias, out_, 0.0f);
  kernels::column_sums(static_cast<const float*>(dy.data), dy.stride, rows, out_, bias);
  pass.gradient->leave(segment, turn);
  pass.show_gradient(*bias_);
}

}  // namespace quern::nn
