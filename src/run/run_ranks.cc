#include "run/run_ranks.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "checkpoint/tensor_refs.h"
#include "core/error.h"
#include "core/text.h"

namespace quern::train {
namespace {

// Far from those that a step uses.
enum Tag : uint32_t { kFlags = 1u << 24, kSizes, kTexts, kStates };

// The first line that differs, of each.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  size_t begin = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '\n') begin = i + 1;
  }
  const auto line = [&](std::string_view text) {
    return std::string(text.substr(std::min(begin, text.size()), text.find('\n', begin) - begin));
  };
  return {line(a), line(b)};
}

}  // namespace

bool RunRanks::any(bool flag) const {
  if (ranks_ == nullptr) return flag;
  std::vector<std::byte> flags(ranks_->size());
  flags[ranks_->rank()] = std::byte{flag};
  dist::all_gather(*ranks_, kFlags, flags, [](size_t rank) { return Range{rank, rank + 1}; });
  return std::find(flags.begin(), flags.end(), std::byte{1}) != flags.end();
}

std::vector<std::string> RunRanks::gather(const std::string& text) const {
  std::vector<uint64_t> sizes(ranks_->size());
  sizes[ranks_->rank()] = text.size();
  dist::all_gather(*ranks_, kSizes, std::as_writable_bytes(std::span(sizes)), [](size_t rank) {
    return Range{rank * sizeof(uint64_t), (rank + 1) * sizeof(uint64_t)};
  });
  std::vector<size_t> first(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), first.begin() + 1);
  std::string all(first.back(), '\0');
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(first[ranks_->rank()]));
  dist::all_gather(*ranks_, kTexts, std::as_writable_bytes(std::span(all)), [&](size_t rank) {
    return Range{first[rank], first[rank + 1]};
  });
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank) texts.push_back(all.substr(first[rank], sizes[rank]));
  return texts;
}

std::string RunRanks::from_first(const std::string& text) const {
  return ranks_ == nullptr ? text : gather(writes() ? text : std::string()).front();
}

void RunRanks::check_same(std::string_view what, const std::string& text) const {
  if (ranks_ == nullptr) return;
  const std::vector<std::string> texts = gather(text);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto [expected, found] = first_difference(texts[0], texts[rank]);
    throw AgreedError(Error("[dist] {}: expected the same on every rank, found {} on rank 0 and {} on rank {}", what,
                            in_quotes(expected), in_quotes(found), rank));
  }
}

void RunRanks::agree(const std::function<void()>& body) const {
  if (ranks_ == nullptr) return body();
  std::string error;
  try {
    body();
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  const std::vector<std::string> errors = gather(error);
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank].empty()) continue;
    const bool all_alike = std::equal(errors.begin() + 1, errors.end(), errors.begin());
    throw AgreedError(all_alike || rank == 0 ? Error(errors[rank]) : Error("[dist] rank {}: {}", rank, errors[rank]));
  }
}

void RunRanks::abort() const noexcept {
  if (ranks_ != nullptr) ranks_->abort();
}

RankedStates::RankedStates(const RunRanks& ranks, const nn::ParameterTable& table, Optimizer& optimizer)
    : ranks_(ranks),
      table_(table),
      optimizer_(optimizer),
      owners_(table, optimizer.units(), ranks.place().ranks),
      refs_(checkpoint::optimizer_refs(table, optimizer)) {
  if (!ranks.several()) return;
  for (OptimizerState& state : optimizer.states()) use_small_pages(state.values.span());
  if (!ranks.writes()) return;
  size_t largest = 0, ref = 0;
  for (const nn::Segment& segment : table.segments()) largest = std::max(largest, segment.size);
  received_ = AlignedBuffer<float>(largest);
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
      if (at == begin) dist::wait(ranks, ranks.receive(owner, kStates, std::as_writable_bytes(values)));
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
        dist::wait(ranks, ranks.send(0, kStates, std::as_bytes(values_of(state, table_.segments()[s]))));
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
