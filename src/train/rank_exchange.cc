#include "train/rank_exchange.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "dist/tags.h"
#include "kernels/vector_ops.h"

namespace quern::train {
namespace {

// Tags of a step: numbers, then the segments of the gradient, then the units of the weights.
enum StepTag : uint32_t {
  kLosses = dist::kStepTags,
  kNorms,
  kStats,
  kChanges,
  kSegments,
};

uint32_t segment_tag(size_t segment) { return static_cast<uint32_t>(kSegments + segment); }

// The nodes of all ranks in the order of their lanes, and after each of them as many additions of the topmost two as
// complete a node of the tree.
std::vector<size_t> merges_of(const std::vector<Range>& nodes, size_t lanes) {
  std::vector<size_t> merges(nodes.size(), 0);
  size_t next = 0;
  const std::function<void(const Range&)> walk = [&](const Range& node) {
    if (nodes[next].begin == node.begin && nodes[next].end == node.end) {
      ++next;
      return;
    }
    walk({node.begin, nn::LaneTree::middle(node)});
    walk({nn::LaneTree::middle(node), node.end});
    ++merges[next - 1];
  };
  walk({0, lanes});
  return merges;
}

}  // namespace

Ownership::Ownership(const nn::ParameterTable& table, std::span<const UpdateUnit> units, size_t ranks)
    : segment_owner_(table.segments().size()), units_(ranks), segments_(ranks) {
  std::vector<size_t> floats(ranks, 0);
  for (size_t unit = 0; unit < units.size(); ++unit) {  // the largest first
    const size_t owner = static_cast<size_t>(std::min_element(floats.begin(), floats.end()) - floats.begin());
    units_[owner].push_back(unit);
    for (size_t i = 0; i < units[unit].segments; ++i) {
      const size_t segment = units[unit].first_segment + i;
      floats[owner] += table.segments()[segment].size;
      segment_owner_[segment] = owner;
    }
  }
  for (size_t segment = 0; segment < segment_owner_.size(); ++segment) {
    segments_[segment_owner_[segment]].push_back(segment);
  }
}

ExchangeSlots::ExchangeSlots(const LaneShare& share, size_t largest_segment) {
  constexpr size_t kMaxSlots = 8, kMaxBytes = size_t{64} << 20;
  size_t nodes = 0;
  for (size_t rank = 0; rank < share.ranks; ++rank) {
    if (rank != share.rank) nodes += nn::LaneTree(share.lanes, share.of(rank)).nodes().size();
  }
  floats = nodes * largest_segment;
  count = std::clamp<size_t>(kMaxBytes / sizeof(float) / std::max<size_t>(1, floats), 1, kMaxSlots);
}

struct RankExchange::Slot {
  size_t segment = 0;
  bool used = false;
  AlignedBuffer<float> parts;  // the nodes of other ranks, one after the other
  std::vector<dist::Communicator::Request> requests = {};
};

RankExchange::RankExchange(dist::Communicator& ranks, const StepCut& cut, std::span<const UpdateUnit> units,
                           nn::Gradient& gradient, std::span<float> weights, const Numbers& numbers)
    : ranks_(ranks),
      cut_(cut),
      units_(units),
      gradient_(gradient),
      table_(gradient.table()),
      weights_(weights),
      numbers_(numbers),
      owners_(table_, units, ranks.size()),
      ready_(std::bit_ceil(table_.segments().size())),
      updated_(std::bit_ceil(units.size())),
      arrived_(std::bit_ceil(units.size())) {
  if (unit_tag(units.size()) > ranks.max_tag()) {
    throw Error("[dist] MPI: expected tags up to {} for this model, found at most {}; choose another transport",
                unit_tag(units.size()), ranks.max_tag());
  }
  std::vector<Range> all;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const nn::LaneTree tree(cut.share.lanes, cut.share.of(rank));
    nodes_of_rank_.push_back(tree.nodes().size());
    all.insert(all.end(), tree.nodes().begin(), tree.nodes().end());
    if (rank == ranks.rank()) continue;
    foreign_.insert(foreign_.end(), owners_.units_of(rank).begin(), owners_.units_of(rank).end());
  }
  merges_ = merges_of(all, cut.share.lanes);
  const ExchangeSlots slots(cut.share, table_.largest_segment());
  for (size_t i = 0; i < slots.count; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->parts = AlignedBuffer<float>(slots.floats);
  }
  gradient_.send_to(this);
  thread_ = std::thread([this] { main(); });
}

RankExchange::~RankExchange() {
  end();
  gradient_.send_to(nullptr);
}

void RankExchange::end() {
  stop();
  ready_.close();
  ending_.store(true, std::memory_order_seq_cst);
  commands_.add(1);
  if (thread_.joinable()) thread_.join();
}

void RankExchange::rethrow() const {
  if (has_failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
}

void RankExchange::begin(bool measured) {
  measured_ = measured;
  start(Command::kGradient, {});
}

void RankExchange::take(size_t segment) { ready_.push(static_cast<uint32_t>(segment)); }

void RankExchange::start(Command command, std::function<void()> then) {
  then_ = std::move(then);
  command_.store(command, std::memory_order_release);
  commands_.add(1);
}

void RankExchange::main() noexcept {
  try {
    work();
  } catch (...) {
    failure_ = std::current_exception();
    has_failed_.store(true, std::memory_order_release);
    ranks_.abort();
    stop();
    if (failed_) failed_();
  }
}

// kGradient is the beginning of kNumbers: the exchange of segments goes on until that command has come, too. So is
// kUpdate of kWeights. A command may be seen before it is counted, so a change of the count can also mean that there is
// nothing to do.
void RankExchange::work() {
  for (uint32_t seen = 0;;) {
    commands_.await_change(seen);
    seen = commands_.value();
    if (ending_.load(std::memory_order_seq_cst)) return;
    switch (command_.load(std::memory_order_acquire)) {
      case Command::kNone:
        continue;
      case Command::kGradient:
      case Command::kNumbers:
        exchange_gradient();
        if (ending_.load(std::memory_order_seq_cst)) return;
        exchange_numbers();
        break;
      case Command::kUpdate:
      case Command::kWeights:
        exchange_weights();
        if (ending_.load(std::memory_order_seq_cst)) return;
    }
    command_.store(Command::kNone, std::memory_order_relaxed);
    std::exchange(then_, nullptr)();
  }
}

// Ends when all own segments are complete, everything is sent, and this rank's workers have finished.
void RankExchange::exchange_gradient() {
  own_left_ = owners_.segments_of(ranks_.rank()).size();
  ready_left_ = table_.segments().size();
  dist::Backoff backoff;
  const auto done = [&] {
    return ready_left_ == 0 && own_left_ == 0 && sends_.empty() &&
           command_.load(std::memory_order_acquire) == Command::kNumbers;
  };
  while (!done()) {
    if (ending_.load(std::memory_order_relaxed)) return;
    bool progress = false;
    while (const std::optional<uint32_t> segment = next_ready()) progress = dispatch(*segment);
    for (const std::unique_ptr<Slot>& slot : slots_) {
      if (!slot->used && !own_ready_.empty()) {
        receive_parts(*slot, own_ready_.front());
        own_ready_.pop_front();
        progress = true;
      }
      if (slot->used && check_parts(*slot)) progress = true;
    }
    if (check_sends()) progress = true;
    if (progress) {
      backoff.reset();
    } else if (command_.load(std::memory_order_relaxed) == Command::kNumbers) {
      backoff.pause();
    } else {
      backoff.sleep();  // workers compute
    }
  }
}

// Waits if there is nothing else to do: for most of a step, there is not.
std::optional<uint32_t> RankExchange::next_ready() {
  const bool idle = ready_left_ > 0 && own_ready_.empty() && sends_.empty() &&
                    std::none_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->used; });
  return idle ? ready_.pop() : ready_.try_pop();
}

bool RankExchange::dispatch(size_t segment) {
  --ready_left_;
  const size_t owner = owners_.owner_of_segment(segment);
  if (owner == ranks_.rank()) {
    own_ready_.push_back(segment);
    return true;
  }
  const nn::Segment& s = table_.segments()[segment];
  for (size_t node = 0; node < nodes_of_rank_[ranks_.rank()]; ++node) {
    send(owner, segment_tag(segment), std::as_bytes(std::span<const float>(gradient_.node(node, s), s.size)));
  }
  return true;
}

void RankExchange::receive_parts(Slot& slot, size_t segment) {
  slot.segment = segment;
  slot.used = true;
  const size_t size = table_.segments()[segment].size;
  float* part = slot.parts.data();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (size_t node = 0; rank != ranks_.rank() && node < nodes_of_rank_[rank]; ++node, part += size) {
      const std::span<float> values(part, size);
      slot.requests.push_back(ranks_.receive(rank, segment_tag(segment), std::as_writable_bytes(values)));
    }
  }
}

bool RankExchange::check_parts(Slot& slot) {
  const size_t before = slot.requests.size();
  std::erase_if(slot.requests, [&](dist::Communicator::Request request) { return ranks_.done(request); });
  if (slot.requests.empty()) add_up(slot);
  return slot.requests.size() != before || !slot.used;
}

// All parts are there: adds them by the tree, and leaves the sum in the first buffer of the gradient.
void RankExchange::add_up(Slot& slot) {
  const nn::Segment& segment = table_.segments()[slot.segment];
  std::vector<float*> stack;
  float* foreign = slot.parts.data();
  size_t index = 0;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (size_t node = 0; node < nodes_of_rank_[rank]; ++node, ++index) {
      if (rank == ranks_.rank()) {
        stack.push_back(gradient_.node(node, segment));
      } else {
        stack.push_back(foreign);
        foreign += segment.size;
      }
      for (size_t i = 0; i < merges_[index]; ++i) {
        kernels::accumulate(stack[stack.size() - 2], stack.back(), segment.size);
        stack.pop_back();
      }
    }
  }
  float* sum = gradient_.node(0, segment);
  if (stack.front() != sum) std::copy_n(stack.front(), segment.size, sum);
  gradient_.complete(slot.segment);
  slot.used = false;
  --own_left_;
}

// Of every segment, the value that its owner has.
template <typename T>
void RankExchange::share_segments(std::span<T> values, uint32_t tag) {
  std::vector<size_t> first(ranks_.size() + 1, 0);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    first[rank + 1] = first[rank] + owners_.segments_of(rank).size();
  }
  std::vector<T> by_rank(first.back());
  for (size_t i = 0; i < own_segments().size(); ++i) by_rank[first[ranks_.rank()] + i] = values[own_segments()[i]];
  dist::all_gather(ranks_, tag, std::as_writable_bytes(std::span(by_rank)), [&](size_t rank) {
    return Range{first[rank] * sizeof(T), first[rank + 1] * sizeof(T)};
  });
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<size_t>& segments = owners_.segments_of(rank);
    for (size_t i = 0; i < segments.size(); ++i) values[segments[i]] = by_rank[first[rank] + i];
  }
}

void RankExchange::exchange_numbers() {
  const size_t bytes = numbers_.losses.size() / cut_.sequences * sizeof(double);  // per sequence
  dist::all_gather(ranks_, kLosses, std::as_writable_bytes(numbers_.losses), [&](size_t rank) {
    const Range sequences = cut_.sequences_of(rank);
    return Range{sequences.begin * bytes, sequences.end * bytes};
  });
  share_segments(gradient_.norms(), kNorms);
  if (measured_) share_segments(gradient_.all_stats(), kStats);
}

void RankExchange::gather_gradient() {
  for (size_t index = 0; index < table_.segments().size(); ++index) {
    const nn::Segment& segment = table_.segments()[index];
    const size_t owner = owners_.owner_of_segment(index);
    const std::span<float> values(gradient_.node(0, segment), segment.size);
    const uint32_t tag = segment_tag(index);
    if (owner == 0) continue;
    if (ranks_.rank() == 0) dist::wait(ranks_, ranks_.receive(owner, tag, std::as_writable_bytes(values)));
    if (ranks_.rank() == owner) dist::wait(ranks_, ranks_.send(0, tag, std::as_bytes(values)));
  }
}

std::span<float> RankExchange::weights_of(size_t unit) const {
  const nn::Segment &first = table_.segments()[units_[unit].first_segment],
                    &last = table_.segments()[units_[unit].first_segment + units_[unit].segments - 1];
  return weights_.subspan(first.offset, last.offset + last.size - first.offset);
}

uint32_t RankExchange::unit_tag(size_t unit) const { return segment_tag(table_.segments().size() + unit); }

// The order in which they are most likely to arrive: ranks update and send their units in this one.
void RankExchange::receive_units() {
  for (const size_t unit : foreign_) {
    const size_t owner = owners_.owner_of_segment(units_[unit].first_segment);
    arriving_.push_back({unit, ranks_.receive(owner, unit_tag(unit), std::as_writable_bytes(weights_of(unit)))});
  }
}

// Ends when all units of other ranks have arrived, and all own ones are sent.
void RankExchange::exchange_weights() {
  receive_units();
  size_t own_left = own_units().size();
  dist::Backoff backoff;
  const auto done = [&] {
    return own_left == 0 && arriving_.empty() && sends_.empty() &&
           command_.load(std::memory_order_acquire) == Command::kWeights;
  };
  while (!done()) {
    if (ending_.load(std::memory_order_relaxed)) return;
    bool progress = false;
    for (std::optional<uint32_t> unit; (unit = updated_.try_pop()); --own_left, progress = true) {
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        if (rank != ranks_.rank()) send(rank, unit_tag(*unit), std::as_bytes(weights_of(*unit)));
      }
    }
    progress |= take_done(arriving_, [&](const Arriving& next) {
      if (!ranks_.done(next.request)) return false;
      arrived_.push(static_cast<uint32_t>(next.unit));
      return true;
    });
    if (check_sends()) progress = true;
    progress ? backoff.reset() : backoff.pause();
  }
  if (measured_) share_segments(numbers_.changes, kChanges);
}

void RankExchange::send(size_t to, uint32_t tag, std::span<const std::byte> data) {
  sends_.push_back(ranks_.send(to, tag, data));
  bytes_sent_.fetch_add(data.size(), std::memory_order_relaxed);
}

bool RankExchange::check_sends() {
  return take_done(sends_, [&](dist::Communicator::Request request) { return ranks_.done(request); });
}

template <typename T, typename IsDone>
bool RankExchange::take_done(std::deque<T>& pending, IsDone is_done) {
  constexpr size_t kFront = 8;
  const size_t before = pending.size();
  const auto end = pending.begin() + static_cast<std::ptrdiff_t>(std::min(kFront, before));
  pending.erase(std::remove_if(pending.begin(), end, is_done), end);
  return pending.size() != before;
}

}  // namespace quern::train
