#include "nn/layers/products.h"

#include <algorithm>

#include "nn/regions.h"

namespace quern::nn {

using kernels::Gemm;
using kernels::kPanelColumns;
using kernels::Layout;

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

namespace {

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

}  // namespace

void add_product(const Pass& pass, ParameterId id, const kernels::Operand& a, const kernels::Operand& b, size_t rows,
                 const TurnEnds& ends) {
  const Parameter& matrix = pass.parameter(id);
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

}  // namespace quern::nn
