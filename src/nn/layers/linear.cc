#include "nn/layers/linear.h"

#include <algorithm>
#include <cassert>

#include "kernels/column_sums.h"

namespace quern::nn {

using kernels::Epilogue;
using kernels::Gemm;
using kernels::kPanelColumns;
using kernels::Layout;

namespace {

// A member's part of a product. Columns of C are split first, because then no two members read or pack the same part of
// B; rows are split too if there are more members than column panels.
void gemm_part(const Gemm& gemm, const Pass& pass) {
  const Member& member = pass.member;
  if (member.size == 1) return kernels::gemm(gemm, pass.gemm_scratch());
  const size_t panels = (gemm.N + kPanelColumns - 1) / kPanelColumns;
  const size_t across = std::min(member.size, panels), down = member.size / across;
  if (member.index >= across * down) return;
  const Member column{.index = member.index % across, .size = across};
  const Member row{.index = member.index / across, .size = down};
  kernels::gemm(kernels::block_of(gemm, row.part(gemm.M), column.part(gemm.N, kPanelColumns)), pass.gemm_scratch());
}

// Packs b (rows, width) into work.packed, as the right operand of several products.
void pack_together(const Pass& pass, const kernels::Operand& b, size_t rows, size_t width) {
  const Timed timed(kPackOperand, static_cast<double>(rows * width * 8) / static_cast<double>(pass.member.size));
  kernels::pack_b({.layout = Layout::kTN,
                   .b = b,
                   .K = rows,
                   .packed = pass.work.packed.data(),
                   .rows = {0, rows},
                   .columns = pass.member.part(width, kPanelColumns)});
  pass.member.meet();
}

// Adds a^T (rows, M) b (rows, width), in turn, to the gradient of the matrix (M, width): this member's part of it,
// passed on in as many pieces as the gradient asks for.
void add_product(const Pass& pass, const Parameter& matrix, ParameterId id, const kernels::Operand& a,
                 const kernels::Operand& b, size_t rows, const TurnEnds& ends) {
  const Turn& turn = pass.batch.turn;
  const size_t width = matrix.width(), at_a_time = pass.gradient->segments_per_product(id);
  const Range mine = pass.member.part(matrix.segments);
  Gemm product{.layout = Layout::kTN,
               .M = matrix.rows(),
               .N = width,
               .K = rows,
               .a = a,
               .b = b,
               .c = pass.gradient->at(id, turn),
               .c_stride = width,
               .add = !(turn.first && ends.first)};
  if (at_a_time < matrix.segments || pass.member.size > 1) {
    pack_together(pass, b, rows, width);
    product.packed_b = pass.work.packed.data();
  }
  const std::vector<Segment>& segments = pass.weights.table().segments();
  for (size_t s = mine.begin; s < mine.end; s += at_a_time) {
    const size_t first = matrix.first_segment + s, end = matrix.first_segment + std::min(s + at_a_time, mine.end);
    for (size_t i = first; ends.first && i < end; ++i) pass.gradient->enter(i, turn, pass.member);
    const Segment &top = segments[first], &bottom = segments[end - 1];
    kernels::gemm(kernels::block_of(product, {top.row, bottom.row + bottom.rows}, {0, width}), pass.gemm_scratch());
    for (size_t i = first; ends.last && i < end; ++i) pass.gradient->leave(i, turn);
  }
}

}  // namespace

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
  gemm_part({.layout = order_ == Product::kInOut ? Layout::kNN : Layout::kNT,
             .M = rows,
             .N = out_,
             .K = in_,
             .a = {x, in_},
             .b = {matrix.values, matrix.width},
             .packed_b = matrix.packed_forward,
             .packed_type = matrix.packed_type,
             .c = out.y,
             .c_stride = out.stride == 0 ? out_ : out.stride,
             .epilogue = epilogue,
             .bias = bias_ ? pass.weights.at(*bias_) : nullptr,
             .saved = out.saved},
            pass);
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
}

void Linear::backward_weights(const Pass& pass, const float* x, const LinearGradient& dy, size_t rows,
                              const TurnEnds& ends) const {
  const Timed timed(regions_->weight_gradient, product_flops(pass, rows, in_, out_), tag_);
  const Parameter& weight = pass.parameter(weight_);
  if (weight.trainable) {
    if (order_ == Product::kInOut) {
      add_product(pass, weight, weight_, {x, in_}, operand(dy), rows, ends);
    } else {
      add_product(pass, weight, weight_, operand(dy), {x, in_}, rows, ends);
    }
    if (ends.last) pass.show_gradient(weight_);
  }
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
