#include "nn/linear.h"

#include <algorithm>

#include "kernels/column_sums.h"
#include "nn/regions.h"

namespace quern {

using kernels::Epilogue;
using kernels::Gemm;
using kernels::kPanelColumns;
using kernels::Layout;

namespace {

Gemm forward(const Linear& linear, const float* x, const LinearOut& out, size_t rows, Epilogue epilogue) {
  return {.layout = Layout::kNN,
          .M = rows,
          .N = linear.out,
          .K = linear.in,
          .a = {x, linear.in},
          .b = {linear.weight, linear.out},
          .packed_b = linear.packed_forward,
          .packed_type = linear.packed_type,
          .c = out.y,
          .c_stride = linear.out,
          .epilogue = epilogue,
          .bias = linear.bias,
          .saved = out.saved};
}

// Packs b (rows, width) into work.packed, as the right operand of several products.
void pack_together(const Pass& pass, const float* b, size_t rows, size_t width) {
  const Timed timed(kPackOperand, static_cast<double>(rows * width * 8) / static_cast<double>(pass.member.size));
  kernels::pack_b({.layout = Layout::kTN,
                   .b = {b, width},
                   .K = rows,
                   .packed = pass.work.packed.data(),
                   .rows = {0, rows},
                   .columns = pass.member.part(width, kPanelColumns)});
  pass.member.meet();
}

void add_bias_in_turn(const Pass& pass, const LinearSlots& slots, const float* dy) {
  const size_t segment = pass.layout.tensors()[slots.tensor + 1].first_segment;
  const Turn& turn = pass.batch.turn;
  float* bias = pass.gradient->values().data() + slots.bias;
  pass.gradient->enter(segment, turn, pass.member);
  if (turn.first) std::fill_n(bias, slots.out, 0.0f);
  kernels::column_sums(dy, pass.rows(), slots.out, bias);
  pass.gradient->leave(segment, turn);
}

}  // namespace

void gemm_part(const Gemm& gemm, const Member& member, std::span<float> scratch) {
  if (member.size == 1) return kernels::gemm(gemm, scratch);
  const size_t panels = (gemm.N + kPanelColumns - 1) / kPanelColumns;
  const size_t across = std::min(member.size, panels), down = member.size / across;
  if (member.index >= across * down) return;
  const Member column{.index = member.index % across, .size = across};
  const Member row{.index = member.index / across, .size = down};
  kernels::gemm(kernels::block_of(gemm, row.part(gemm.M), column.part(gemm.N, kPanelColumns)), scratch);
}

void linear_forward(const Linear& linear, const float* x, const LinearOut& out, size_t rows, std::span<float> scratch,
                    const Member& member) {
  gemm_part(forward(linear, x, out, rows, Epilogue::kBias), member, scratch);
}

void linear_gelu_forward(const Linear& linear, const float* x, const LinearOut& out, size_t rows,
                         std::span<float> scratch, const Member& member) {
  gemm_part(forward(linear, x, out, rows, Epilogue::kBiasGelu), member, scratch);
}

void add_product_in_turn(const Pass& pass, const AddProduct& args) {
  const TensorInfo& tensor = pass.layout.tensors()[args.tensor];
  const Turn& turn = pass.batch.turn;
  const size_t width = tensor.shape[1], at_once = pass.gradient->segments_at_once(args.tensor);
  const Range mine = pass.member.part(tensor.segments);
  Gemm whole{.layout = Layout::kTN,
             .M = tensor.shape[0],
             .N = width,
             .K = args.rows,
             .a = {args.a, args.a_stride},
             .b = {args.b, width},
             .c = pass.gradient->values().data() + tensor.offset,
             .c_stride = width,
             .add = !(turn.first && args.first)};
  if (at_once < tensor.segments || pass.member.size > 1) {
    pack_together(pass, args.b, args.rows, width);
    whole.packed_b = pass.work.packed.data();
  }
  for (size_t s = mine.begin; s < mine.end; s += at_once) {
    const size_t first = tensor.first_segment + s, end = tensor.first_segment + std::min(s + at_once, mine.end);
    for (size_t i = first; args.first && i < end; ++i) pass.gradient->enter(i, turn, pass.member);
    const Segment &top = pass.layout.segments()[first], &bottom = pass.layout.segments()[end - 1];
    kernels::gemm(kernels::block_of(whole, {top.row, bottom.row + bottom.rows}, {0, width}), pass.gemm_scratch());
    for (size_t i = first; args.last && i < end; ++i) pass.gradient->leave(i, turn);
  }
}

void linear_backward_input(const Pass& pass, const Linear& linear, const float* dy, float* dx) {
  gemm_part({.layout = Layout::kNT,
             .M = pass.rows(),
             .N = linear.in,
             .K = linear.out,
             .a = {dy, linear.out},
             .b = {linear.weight, linear.out},
             .packed_b = linear.packed_backward,
             .packed_type = linear.packed_type,
             .c = dx,
             .c_stride = linear.in},
            pass.member, pass.gemm_scratch());
}

void linear_backward_weights(const Pass& pass, const LinearSlots& slots, const float* x, const float* dy) {
  add_product_in_turn(pass, {.tensor = slots.tensor, .a = x, .a_stride = slots.in, .b = dy, .rows = pass.rows()});
  if (pass.member.last()) add_bias_in_turn(pass, slots, dy);
}

}  // namespace quern
