#include "nn/layers/board_input.h"

#include <algorithm>
#include <cmath>

#include "kernels/column_sums.h"
#include "kernels/planes.h"
#include "kernels/vector_ops.h"

namespace quern::nn {
namespace {

// Of the input at the start, for planes of which a few are 1 on a square: the first norm divides by it anyway.
constexpr double kDeviation = 0.1;

}  // namespace

BoardInput::BoardInput(Declaration& model, const BoardInputSpec& spec)
    : planes_(spec.plane_count),
      squares_(spec.square_count),
      width_(spec.width),
      linear_(model, {.name = spec.planes,
                      .in = planes_,
                      .out = width_,
                      .regions = kBoardInput,
                      .bias = false,
                      .initial = Initial::normal(kDeviation),
                      .hidden = false}),
      table_(model.parameters.add({.name = spec.squares + ".weight",
                                   .shape = {squares_, width_},
                                   .initial = Initial::normal(kDeviation),
                                   .decay = true})) {
  ActivationPlan& plan = model.activations;
  plan.width = width_;
  plan.context = squares_;
  plan.need_wide(planes_);
  plan.cost.output_products += static_cast<double>(planes_ * width_);
  model.columns.push_back({kPlanesColumn, ColumnType::kFloat32, planes_ * squares_});
}

// work.wide (rows, planes) = the planes, a row for each square. Backward does it again: it takes about a hundredth of
// the products of this layer, and the memory is needed in between.
void BoardInput::read_planes(const Pass& pass) const {
  const Timed timed(kPlanes, element_bytes(pass, planes_, 8));
  const Range mine = pass.member.part(pass.batch.sequences);
  const size_t first = mine.begin * planes_ * squares_;
  kernels::planes_to_rows(pass.batch.columns.floats(kPlanesColumn) + first, mine.size(), planes_, squares_,
                          pass.work.wide.data() + first);
  pass.member.meet();
}

void BoardInput::forward(const Pass& pass, float* x) const {
  read_planes(pass);
  linear_.forward(pass, pass.work.wide.data(), {x}, pass.rows());
  pass.member.meet();
  const Timed timed(kEmbeddingForward, element_bytes(pass, width_, 12));
  const Range mine = pass.member.part(pass.rows());
  const float* table = pass.weights.at(table_);
  for (size_t row = mine.begin; row < mine.end;) {
    const size_t square = row % squares_, count = std::min(squares_ - square, mine.end - row);
    kernels::accumulate(x + row * width_, table + square * width_, count * width_);
    row += count;
  }
  pass.show("embedding", x, pass.rows() * width_);
}

void BoardInput::backward(const Pass& pass) const {
  read_planes(pass);
  linear_.backward_weights(pass, pass.work.wide.data(), pass.work.dx.data(), pass.rows());
  if (pass.member.last()) add_squares(pass);
}

// To a board, the table of squares is one long bias. Done by one member: boards are summed in order.
void BoardInput::add_squares(const Pass& pass) const {
  const Timed timed(kEmbeddingBackward, static_cast<double>(pass.rows() * width_ * 12));
  const Parameter& table = pass.parameter(table_);
  const Turn& turn = pass.batch.turn;
  for (size_t i = 0; i < table.segments; ++i) {
    const Segment& segment = pass.weights.table().segments()[table.first_segment + i];
    const size_t at = segment.row * width_, count = segment.rows * width_;
    float* sums = pass.gradient->at(table_, turn) + at;
    pass.gradient->enter(table.first_segment + i, turn, pass.member);
    if (turn.first) std::fill_n(sums, count, 0.0f);
    kernels::column_sums(pass.work.dx.data() + at, squares_ * width_, pass.batch.sequences, count, sums);
    pass.gradient->leave(table.first_segment + i, turn);
  }
  pass.show_gradient(table_);
}

}  // namespace quern::nn
