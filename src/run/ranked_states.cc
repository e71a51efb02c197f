#include "run/ranked_states.h"

#include "checkpoint/tensor_refs.h"
#include "dist/tags.h"

namespace quern::train {
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
  for (const OptimizerState& state : optimizer.states()) {
    for (size_t i = 0; i < table.all().size(); ++i) {
      const nn::Parameter& parameter = table.all()[i];
      if (state.offsets[i] == OptimizerState::kNone) continue;
      for (size_t s = parameter.first_segment; s < parameter.first_segment + parameter.segments; ++s) {
        if (owners_.owner_of_segment(s) != 0) foreign_.push_back(s);
      }
    }
  }
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
      if (at == begin) receive(index);
    }
    return std::as_bytes(values).subspan(at - begin);
  }
  return {};
}

void RankedStates::receive(size_t segment) {
  dist::Communicator& ranks = *ranks_.communicator();
  const std::span<float> values = received_.span().first(table_.segments()[segment].size);
  dist::wait(ranks, ranks.receive(owners_.owner_of_segment(segment), dist::kStatesTag, std::as_writable_bytes(values)));
  ++next_;
}

void RankedStates::finish() {
  while (next_ < foreign_.size()) receive(foreign_[next_]);
  next_ = 0;
}

void RankedStates::send() {
  dist::Communicator& ranks = *ranks_.communicator();
  for (const OptimizerState& state : optimizer_.states()) {
    for (size_t i = 0; i < table_.all().size(); ++i) {
      const nn::Parameter& parameter = table_.all()[i];
      if (state.offsets[i] == OptimizerState::kNone) continue;
      for (size_t s = parameter.first_segment; s < parameter.first_segment + parameter.segments; ++s) {
        if (owners_.owner_of_segment(s) != ranks.rank()) continue;
        dist::wait(ranks, ranks.send(0, dist::kStatesTag, std::as_bytes(values_of(state, table_.segments()[s]))));
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
