#include "replay/n_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "replay/draw_loop.h"
#include "replay/episode_reader.h"
#include "replay/sequences.h"

namespace quern::replay {
namespace {

template <typename T>
double as_double(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

double number_in(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return as_double<uint8_t>(bytes);
    case DType::kI8:
      return as_double<int8_t>(bytes);
    case DType::kI16:
      return as_double<int16_t>(bytes);
    case DType::kU16:
      return as_double<uint16_t>(bytes);
    case DType::kI32:
      return as_double<int32_t>(bytes);
    case DType::kU32:
      return as_double<uint32_t>(bytes);
    case DType::kI64:
      return as_double<int64_t>(bytes);
    case DType::kU64:
      return as_double<uint64_t>(bytes);
    case DType::kF32:
      return as_double<float>(bytes);
    case DType::kF64:
      return as_double<double>(bytes);
    case DType::kF16:
      break;
  }
  return 0;  // refused by admit_n_step()
}

bool any(std::span<std::byte* const> columns) {
  return std::any_of(columns.begin(), columns.end(), [](const std::byte* column) { return column != nullptr; });
}

// What has been found from a start on.
struct Walk {
  enum class State : uint8_t { kWalking, kDone, kFailed };
  EpisodeRow start;
  EpisodeRow row;                                // the last one reached, and that of the `next` columns
  EpisodeRow last;                               // that of the `last` columns
  alignas(8) std::array<std::byte, 8> reward{};  // of `row`
  uint64_t steps = 0;
  double sum = 0;
  double discount = 1;
  State state = State::kFailed;
};

class NStepSampler {
 public:
  NStepSampler(const ReplayBuffer& buffer, const NStepRequest& request, const NStepArrays& out)
      : buffer_(buffer),
        reader_(buffer),
        request_(request),
        out_(out),
        dtype_(buffer.schema().columns()[request.reward].dtype),
        needs_next_(any(out.next)) {}

  // Walks from all starts of a block at once, a step at a time: the cache misses of one walk, each of which depends on
  // the one before, overlap with those of the others. With rows of 97 bytes: 0.94 instead of 0.46 of the speed of plain
  // samples.
  void prepare(std::span<const Drawn> starts) {
    for (const Drawn& start : starts) prefetch_step(start.id);
    for (size_t i = 0; i < starts.size(); ++i) begin(starts[i].id, walks_[i]);
    bool walking = true;
    while (std::exchange(walking, false)) {
      for (size_t i = 0; i < starts.size(); ++i) walking = advance(walks_[i]) || walking;
    }
    for (size_t i = 0; i < starts.size(); ++i) prefetch_columns(walks_[i]);
  }

  bool use(size_t index, const Drawn& drawn) {
    Walk& walk = walks_[index % kDrawBlock];
    if (drawn.id == kNoRow) return false;
    if (drawn.id != walk.start.id) {  // it replaces one that could not be used
      begin(drawn.id, walk);
      while (advance(walk)) {
      }
    }
    if (walk.state != Walk::State::kDone || !reader_.copy(walk.start, out_.columns, index)) return false;
    if (needs_next_ && !reader_.copy(walk.row, out_.next, index)) return false;
    if (!out_.last.empty() && !reader_.copy(walk.last, out_.last, index)) return false;
    write(index, walk);
    return true;
  }

 private:
  // The first lines of all rows of a block: more would not stay in the cache until they are copied.
  void prefetch_columns(const Walk& walk) const noexcept {
    if (walk.state != Walk::State::kDone) return;
    reader_.prefetch(walk.start.id, out_.columns);
    if (needs_next_) reader_.prefetch(walk.row.id, out_.next);
    if (!out_.last.empty()) reader_.prefetch(walk.last.id, out_.last);
  }

  void prefetch_step(uint64_t id) const noexcept {
    if (id == kNoRow) return;
    reader_.prefetch_link(id);
    __builtin_prefetch(buffer_.stored(request_.reward, id % buffer_.capacity()));
  }

  // Reads the reward together with the place, under one check of the slot instead of two.
  void read_reward(uint64_t slot, Walk& walk) const noexcept {
    buffer_.load(request_.reward, slot, walk.reward.data());
  }

  void begin(uint64_t id, Walk& walk) const {
    walk = {};
    if (id == kNoRow || !reader_.find(id, walk.start, [&](uint64_t slot) { read_reward(slot, walk); })) return;
    walk.row = walk.start;
    arrive(walk);
  }

  // Goes to the next row. False when the walk is over.
  bool advance(Walk& walk) const {
    if (walk.state != Walk::State::kWalking) return false;
    if (reader_.follow(walk.row, [&](uint64_t slot) { read_reward(slot, walk); })) {
      arrive(walk);
    } else {
      walk.state = Walk::State::kFailed;
    }
    return walk.state == Walk::State::kWalking;
  }

  // The table in the header, for the row that the walk has reached.
  void arrive(Walk& walk) const {
    const End end = walk.row.step.end;
    walk.state = Walk::State::kDone;
    if (walk.steps == request_.n) return;
    if (end == End::kTruncated && needs_next_) {
      if (walk.steps == 0) walk.state = Walk::State::kFailed;
      return;
    }
    walk.sum += walk.discount * number_in(dtype_, walk.reward.data());
    walk.discount = end == End::kTerminal ? 0 : walk.discount * request_.gamma;
    ++walk.steps;
    walk.last = walk.row;
    if (end != End::kNone || (walk.steps == request_.n && !needs_next_)) return;
    walk.state = Walk::State::kWalking;
    prefetch_step(walk.row.step.next);
  }

  void write(size_t index, const Walk& walk) const {
    if (out_.returns != nullptr) out_.returns[index] = static_cast<float>(walk.sum);
    if (out_.discounts != nullptr) out_.discounts[index] = static_cast<float>(walk.discount);
    if (out_.steps != nullptr) out_.steps[index] = walk.steps;
    if (out_.next_ids != nullptr) out_.next_ids[index] = walk.row.id;
  }

  const ReplayBuffer& buffer_;
  const EpisodeReader reader_;
  const NStepRequest request_;
  const NStepArrays out_;
  const DType dtype_;
  const bool needs_next_;
  std::array<Walk, kDrawBlock> walks_;  // from the starts of a block
};

}  // namespace

void admit_n_step(const ReplayBuffer& buffer, const NStepRequest& request, const NStepArrays& out, const Wait& wait) {
  expect_episodes(buffer, "sample_n_step");
  check_request(buffer, request.starts);
  const std::vector<Column>& columns = buffer.schema().columns();
  const uint64_t max = std::min<uint64_t>(kMaxSteps, buffer.capacity());
  if (request.n < 1 || request.n > max) {
    throw Error("[replay] sample_n_step: n: expected 1 to {} steps, found {}", max, request.n);
  }
  if (!(request.gamma >= 0 && request.gamma <= 1)) {
    throw Error("[replay] sample_n_step: gamma: expected 0 to 1, found {}", request.gamma);
  }
  if (request.reward >= columns.size()) {
    throw Error("[replay] sample_n_step: reward: expected a column below {}, found {}", columns.size(), request.reward);
  }
  const Column& reward = columns[request.reward];
  if (reward.elements() != 1 || reward.encoding != Encoding::kRaw || reward.dtype == DType::kF16) {
    throw Error("[replay] sample_n_step: reward: column {}: expected one number per row, not float16, found {}",
                in_quotes(reward.name), reward.description());
  }
  const auto as_many = [&](size_t count) { return count == 0 || count == columns.size(); };
  if (out.columns.size() != columns.size() || !as_many(out.next.size()) || !as_many(out.last.size())) {
    throw Error("[replay] sample_n_step: expected {} columns, found {}", columns.size(), out.columns.size());
  }
  admit_samples(buffer, request.starts, request.starts.rows, wait);
}

void sample_n_step(const ReplayBuffer& buffer, const NStepRequest& request, const NStepArrays& out, uint64_t seed,
                   uint64_t call) {
  const std::string wanted = fmt::format("a row with {} more in its episode, or the end of it", request.n);
  draw_intact(buffer, [&] {
    Drawer drawer(buffer, request.starts, seed, call, wanted);
    NStepSampler sampler(buffer, request, out);
    draw_rows(
        drawer, request.starts, {out.ids, out.ages, out.weights},
        [&](size_t index, const Drawn& drawn, const Drawn&) { return sampler.use(index, drawn); },
        [&](std::span<const Drawn> block) { sampler.prepare(block); });
  });
  buffer.count_sampled(request.starts.rows);
}

}  // namespace quern::replay
