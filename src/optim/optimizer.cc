#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/tensor_stats.h"
#include "kernels/vector_ops.h"
#include "optim/adamw.h"
#include "optim/muon.h"

namespace quern {
namespace {

constexpr size_t kLine = kAlignment / sizeof(float);

// Where a state has its numbers for each parameter: those it covers in the order of declaration, each on a cache line.
// For a state that covers all trainable parameters this is the layout of the parameter table.
struct StateLayout {
  std::vector<size_t> offsets;
  size_t size = 0;
};
StateLayout lay_out(const nn::ParameterTable& table, const StateSpec& spec) {
  StateLayout layout;
  for (const nn::Parameter& parameter : table.all()) {
    const bool covered = parameter.trainable && spec.covers(parameter);
    layout.offsets.push_back(covered ? layout.size : OptimizerState::kNone);
    if (covered) layout.size += (parameter.size + kLine - 1) / kLine * kLine;
  }
  return layout;
}

std::vector<StateSpec> states_of(OptimizerKind kind) {
  return kind == OptimizerKind::kMuon ? Muon::states_of() : AdamW::states_of();
}

}  // namespace

Optimizer::Optimizer(const nn::ParameterTable& table, const OptimizerOptions& options,
                     std::span<const StateSpec> states)
    : options_(options), table_(&table) {
  for (size_t i = 0; i < table.segments().size(); ++i) units_.push_back({i, 1});
  for (const StateSpec& spec : states) {
    StateLayout layout = lay_out(table, spec);
    states_.push_back({spec.name, AlignedBuffer<float>(layout.size, Fill::kZero), std::move(layout.offsets)});
  }
}

void Optimizer::reset() {
  for (OptimizerState& state : states_) discard(state.values.span());
}

UpdateReport Optimizer::begin(double squared_norm, double rate, uint64_t update) {
  const double norm = std::sqrt(squared_norm);
  if (!std::isfinite(norm)) return {norm, false};
  const bool clips = options_.clip > 0 && norm > options_.clip;
  prepare({.rate = static_cast<float>(rate),
           .gradient_scale = static_cast<float>(clips ? options_.clip / norm : 1.0),
           .number = update});
  return {norm, true};
}

float* Optimizer::state(size_t index, const nn::Segment& segment, size_t offset) {
  OptimizerState& state = states_[index];
  const size_t first = state.offsets[static_cast<size_t>(segment.parameter)];
  return state.values.data() + first + (offset - (*table_)[segment.parameter].offset);
}

size_t Optimizer::size_of(const UpdateUnit& unit) const {
  const nn::Segment& last = table_->segments()[unit.first_segment + unit.segments - 1];
  return last.offset + last.size - table_->segments()[unit.first_segment].offset;
}

void Optimizer::update(size_t index, size_t thread, std::span<float> weights, std::span<const float> gradient) {
  const UpdateUnit& unit = units_[index];
  const std::span segments = std::span(table_->segments()).subspan(unit.first_segment, unit.segments);
  begin_unit(unit, thread, gradient.data() + segments[0].offset);
  for (const nn::Segment& s : segments) {
    apply({s, s.offset, s.size, thread, weights.data() + s.offset, gradient.data() + s.offset});
  }
}

// In pieces, so that the copy of the weights stays in L1.
void Optimizer::update_and_measure(size_t index, size_t thread, std::span<float> weights,
                                   std::span<const float> gradient, std::span<Change> changes) {
  constexpr size_t kPiece = 2048;
  const UpdateUnit& unit = units_[index];
  begin_unit(unit, thread, gradient.data() + table_->segments()[unit.first_segment].offset);
  float before[kPiece];
  for (size_t segment = unit.first_segment; segment < unit.first_segment + unit.segments; ++segment) {
    const nn::Segment& s = table_->segments()[segment];
    Change change;
    for (size_t i = 0; i < s.size; i += kPiece) {
      const size_t at = s.offset + i, n = std::min(kPiece, s.size - i);
      float* p = weights.data() + at;
      std::copy_n(p, n, before);
      apply({s, at, n, thread, p, gradient.data() + at});
      change.weights += kernels::squared_norm(before, n);
      change.update += kernels::squared_distance(p, before, n);
    }
    changes[segment] = change;
  }
}

std::unique_ptr<Optimizer> make_optimizer(const nn::ParameterTable& table, const OptimizerOptions& options,
                                          size_t threads) {
  if (options.kind == OptimizerKind::kMuon) return std::make_unique<Muon>(table, options, threads);
  return std::make_unique<AdamW>(table, options);
}

OptimizerBytes optimizer_bytes(const nn::ParameterTable& table, OptimizerKind kind, size_t threads) {
  OptimizerBytes bytes;
  for (const StateSpec& spec : states_of(kind)) bytes.states += lay_out(table, spec).size * sizeof(float);
  if (kind == OptimizerKind::kMuon) bytes.scratch = threads * Muon::bytes_per_thread(table);
  return bytes;
}

}  // namespace quern
