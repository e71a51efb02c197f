#include "run/ranked_states.h"

#include "checkpoint/tensor_refs.h"

namespace quern::train {
namespace {

constexpr uint32_t kStatesTag = (1u << 24) + 16;  // above those of run_ranks.cc

}  // namespace

RankedStates::RankedStates(const RunRanks& ranks, const nn::ParameterTable& table, Optimizer& optimizer)
    : ranks_(ranks),
      table_(table),
      optimizer_(optimizer),
      owners_(table, optimizer.units(), ranks.place().ranks),
      refs_(checkpoint::optimizer_refs(table, optimizer)) {
  if (!ranks.several()) return;
  for (OptimizerState& state : optimizer.states()) use_small_pages(state.values.span());
  if (!ranks.writes()) return;
  size_t ref = 0;
  received_ = AlignedBuffer<float>(table.largest_segment());
  for (size_t state = 0; state < optimizer.states().size(); ++state) {
    for (size_t i = 0; i < table.all().size(); ++i) {
      if (optimizer.states()[state].offsets[i] == OptimizerState::kNone) continue;
      refs_[ref++].read = [this, state, i](size_t at) { return read(state, i, at); };
    }
  }
}

std::span<float> RankedStates::values_of(const OptimizerState& state, const nn::Segment& segment) const {
  const nn::Parameter& parameter = table_[segment.parameter];
  const size_t first = state.offsets[static_cast<size_t>(segment.parameter)] + segment.offset - parameter.offset;
  return {const_cast<float*>(state.values.data()) + first, segment.size};
}

// The rest of the segment that contains byte `at` of the parameter.
std::span<const std::byte> RankedStates::read(size_t state, size_t parameter, size_t at) {
  const nn::Parameter& p = table_.all()[parameter];
  for (size_t i = 0; i < p.segments; ++i) {
    const size_t index = p.first_segment + i;
    const nn::Segment& segment = table_.segments()[index];
    const size_t begin = (segment.offset - p.offset) * sizeof(float), bytes = segment.size * sizeof(float);
    if (at >= begin + bytes) continue;
    const size_t owner = owners_.owner_of_segment(index);
    std::span<float> values = values_of(optimizer_.states()[state], segment);
    if (owner != ranks_.place().rank) {
      values = received_.span().first(segment.size);
      dist::Communicator& ranks = *ranks_.communicator();
      if (at == begin) dist::wait(ranks, ranks.receive(owner, kStatesTag, std::as_writable_bytes(values)));
    }
    return std::as_bytes(values).subspan(at - begin);
  }
  return {};
}

void RankedStates::send() {
  dist::Communicator& ranks = *ranks_.communicator();
  for (const OptimizerState& state : optimizer_.states()) {
    for (size_t i = 0; i < table_.all().size(); ++i) {
      const nn::Parameter& parameter = table_.all()[i];
      if (state.offsets[i] == OptimizerState::kNone) continue;
      for (size_t s = parameter.first_segment; s < parameter.first_segment + parameter.segments; ++s) {
        if (owners_.owner_of_segment(s) != ranks.rank()) continue;
        dist::wait(ranks, ranks.send(0, kStatesTag, std::as_bytes(values_of(state, table_.segments()[s]))));
      }
    }
  }
}

void RankedStates::release_foreign() {
  if (!ranks_.several()) return;
  for (OptimizerState& state : optimizer_.states()) {
    for (size_t s = 0; s < table_.segments().size(); ++s) {
      const nn::Segment& segment = table_.segments()[s];
      if (owners_.owner_of_segment(s) == ranks_.place().rank) continue;
      if (state.offsets[static_cast<size_t>(segment.parameter)] == OptimizerState::kNone) continue;
      discard(values_of(state, segment));
    }
  }
}

}  // namespace quern::train
