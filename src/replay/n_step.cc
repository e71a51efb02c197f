#include "replay/n_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

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

// What was found from a start on.
struct Found {
  EpisodeRow last, next;  // the rows of the `last` and the `next` columns
  uint64_t steps = 0;
  double sum = 0;
  double discount = 1;
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

  bool use(size_t index, const Drawn& drawn, const Drawn& following) const {
    EpisodeRow start;
    Found found;
    if (drawn.id == kNoRow) return false;
    reader_.prefetch(drawn.id, out_.columns);
    if (!reader_.find(drawn.id, start) || !walk(start, found)) return false;
    if (needs_next_) reader_.prefetch(found.next.id, out_.next);
    if (!reader_.copy(start, out_.columns, index)) return false;
    reader_.prefetch(following.id, out_.columns);
    if (needs_next_ && !reader_.copy(found.next, out_.next, index)) return false;
    if (!out_.last.empty() && !reader_.copy(found.last, out_.last, index)) return false;
    write(index, found);
    return true;
  }

 private:
  // The reward of a row that still has its place.
  bool reward(const EpisodeRow& row, double& value) const {
    alignas(8) std::byte bytes[8] = {};
    bool same = false;
    const bool there = buffer_.ring().read(row.id, [&](uint64_t slot) {
      same = buffer_.links()->load(slot).place == row.step.place;
      buffer_.load(request_.reward, slot, bytes);
    });
    value = number_in(dtype_, bytes);
    return there && same;
  }

  // The table in the header, row by row. False if the start cannot be drawn.
  bool walk(EpisodeRow row, Found& found) const {
    for (size_t i = 0;; ++i) {
      const End end = row.step.end;
      found.next = row;
      if (i == request_.n) return true;
      if (end == End::kTruncated && needs_next_) return i > 0;
      double value = 0;
      if (!reward(row, value)) return false;
      found.sum += found.discount * value;
      found.discount *= request_.gamma;
      found.steps = i + 1;
      found.last = row;
      if (end == End::kTerminal) found.discount = 0;
      if (end != End::kNone || (i + 1 == request_.n && !needs_next_)) return true;
      if (!reader_.follow(row)) return false;
    }
  }

  void write(size_t index, const Found& found) const {
    if (out_.returns != nullptr) out_.returns[index] = static_cast<float>(found.sum);
    if (out_.discounts != nullptr) out_.discounts[index] = static_cast<float>(found.discount);
    if (out_.steps != nullptr) out_.steps[index] = found.steps;
    if (out_.next_ids != nullptr) out_.next_ids[index] = found.next.id;
  }

  const ReplayBuffer& buffer_;
  const EpisodeReader reader_;
  const NStepRequest request_;
  const NStepArrays out_;
  const DType dtype_;
  const bool needs_next_;
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
    const NStepSampler sampler(buffer, request, out);
    draw_rows(
        drawer, request.starts, {out.ids, out.ages, out.weights},
        [&](size_t index, const Drawn& drawn, const Drawn& following) { return sampler.use(index, drawn, following); });
  });
  buffer.count_sampled(request.starts.rows);
}

}  // namespace quern::replay
