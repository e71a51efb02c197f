#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optim/adamw.h"

namespace quern {
namespace {

const Region kMuon("Muon", Unit::kFlops);
constexpr double kFirstMomentum = 0.85;
enum State : size_t { kMomentum, kFirstMoment, kSecondMoment };  // in the order of states_of()

bool by_adamw(const nn::Parameter& parameter) { return !Muon::covers(parameter); }

// The matrices that are stored side by side in one parameter: its columns if it is (in, out), its rows if it is (out,
// in).
MatrixView part_of(const nn::Parameter& parameter, float* data, size_t part) {
  const size_t rows = parameter.rows(), width = parameter.width(), parts = parameter.parts;
  if (parameter.product == nn::Product::kInOut) return {data + part * (width / parts), rows, width / parts, width};
  return {data + part * (rows / parts) * width, rows / parts, width, width};
}

// sqrt(max(1, out / in)): a matrix with more outputs than inputs has larger steps.
double shape_factor(const nn::Parameter& parameter) {
  const MatrixView part = part_of(parameter, nullptr, 0);
  const bool in_out = parameter.product == nn::Product::kInOut;
  const auto in = static_cast<double>(in_out ? part.rows : part.columns);
  const auto out = static_cast<double>(in_out ? part.columns : part.rows);
  return std::sqrt(std::max(1.0, out / in));
}

struct ScratchSize {
  size_t floats = 0;
  Orthogonalizer::Size orthogonalizer;
};
ScratchSize scratch_size(const nn::ParameterTable& table) {
  ScratchSize size;
  for (const nn::Parameter& parameter : table.all()) {
    if (!Muon::covers(parameter)) continue;
    const MatrixView part = part_of(parameter, nullptr, 0);
    size.floats = std::max(size.floats, parameter.size);
    size.orthogonalizer.include(part.rows, part.columns);
  }
  return size;
}

// Matrices, the largest first, then the segments of the other parameters.
std::vector<UpdateUnit> units_of(const nn::ParameterTable& table) {
  std::vector<const nn::Parameter*> matrices;
  std::vector<UpdateUnit> units;
  for (const nn::Parameter& parameter : table.all()) {
    if (Muon::covers(parameter)) matrices.push_back(&parameter);
  }
  std::stable_sort(matrices.begin(), matrices.end(),
                   [](const nn::Parameter* a, const nn::Parameter* b) { return a->size > b->size; });
  for (const nn::Parameter* matrix : matrices) units.push_back({matrix->first_segment, matrix->segments});
  for (size_t i = 0; i < table.segments().size(); ++i) {
    if (!Muon::covers(table[table.segments()[i].parameter])) units.push_back({i, 1});
  }
  return units;
}

}  // namespace

std::vector<StateSpec> Muon::states_of() { return {{"momentum", covers}, {"m", by_adamw}, {"v", by_adamw}}; }

Muon::Muon(const nn::ParameterTable& table, const OptimizerOptions& options, size_t threads)
    : Optimizer(table, options, states_of()) {
  const ScratchSize size = scratch_size(table);
  if (size.floats == 0) {
    throw Error(
        "[optimizer] optimizer.kind: muon expects a model with trainable matrices between its layers, found none; use "
        "adamw");
  }
  units_ = units_of(table);
  for (size_t thread = 0; thread < threads; ++thread) {
    scratch_.push_back(
        {AlignedBuffer<float>(size.floats), AlignedBuffer<float>(size.floats), Orthogonalizer(size.orthogonalizer)});
  }
}

size_t Muon::bytes_per_thread(const nn::ParameterTable& table) {
  const ScratchSize size = scratch_size(table);
  return 2 * size.floats * sizeof(float) + size.orthogonalizer.bytes();
}

void Muon::prepare(const Update& update) {
  step_ = adamw_step(options(), update.rate, update.gradient_scale, update.number);
  const double warm =
      options().momentum_warmup == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(update.number) / static_cast<double>(options().momentum_warmup));
  const double momentum = warm * options().momentum + (1 - warm) * std::min(kFirstMomentum, options().momentum);
  momentum_ = {.momentum = static_cast<float>(momentum), .gradient_scale = update.gradient_scale};
  matrix_rate_ = static_cast<float>(static_cast<double>(update.rate) * options().matrix_rate);
}

void Muon::begin_unit(const UpdateUnit& unit, size_t thread, const float* gradient) {
  const nn::Segment& first = table().segments()[unit.first_segment];
  const nn::Parameter& parameter = table()[first.parameter];
  if (!covers(parameter)) return;
  Scratch& scratch = scratch_[thread];
  kernels::momentum(momentum_, state(kMomentum, first, first.offset), gradient, scratch.x.data(), parameter.size);
  for (size_t part = 0; part < parameter.parts; ++part) {
    scratch.orthogonalizer.run(part_of(parameter, scratch.x.data(), part),
                               part_of(parameter, scratch.y.data(), part).data);
  }
}

void Muon::apply(const UpdatePiece& piece) {
  const nn::Segment& segment = piece.segment;
  const nn::Parameter& parameter = table()[segment.parameter];
  const float decay = segment.decay ? options().weight_decay : 0.0f;
  if (covers(parameter)) {
    const float* direction = scratch_[piece.thread].y.data() + (piece.offset - parameter.offset);
    return kernels::apply_direction(
        {.rate = matrix_rate_, .scale = static_cast<float>(shape_factor(parameter)), .weight_decay = decay},
        piece.weights, direction, piece.n);
  }
  kernels::AdamW step = step_;
  step.weight_decay = decay;
  kernels::adamw(step, piece.weights, piece.gradient, state(kFirstMoment, segment, piece.offset),
                 state(kSecondMoment, segment, piece.offset), piece.n);
}

UnitWork Muon::work(const UpdateUnit& unit) const {
  const nn::Parameter& parameter = table()[table().segments()[unit.first_segment].parameter];
  if (!covers(parameter)) return adamw_work(size_of(unit));
  const MatrixView part = part_of(parameter, nullptr, 0);
  return {&kMuon, static_cast<double>(parameter.parts) * orthogonalize_flops(part.rows, part.columns)};
}

}  // namespace quern
