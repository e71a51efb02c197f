#include "replay/sequences.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "replay/draw_loop.h"
#include "replay/episode_reader.h"

namespace quern::replay {
namespace {

constexpr size_t kMaxLength = kMaxSteps;

class SequenceSampler {
 public:
  SequenceSampler(const ReplayBuffer& buffer, const SequenceRequest& request, const SequenceArrays& out)
      : buffer_(buffer), reader_(buffer), request_(request), out_(out), rows_(request.length) {}

  // Writes sequence `index` if one starts at the drawn row.
  bool use(size_t index, const Drawn& drawn, const Drawn& following) {
    const size_t found = walk(drawn.id);
    if (found == 0 || (found < request_.length && !request_.pad)) return false;
    for (size_t i = 0; i < found; ++i) {
      if (i + 1 == found) reader_.prefetch_link(following.id);
      reader_.prefetch(i + 1 < found ? rows_[i + 1].id : following.id, out_.columns);
      if (!reader_.copy(rows_[i], out_.columns, index * request_.length + i)) return false;
    }
    finish(index, found);
    return true;
  }

 private:
  // Finds the rows before copying any: a sequence that turns out to be too short costs only their links.
  size_t walk(uint64_t start) {
    EpisodeRow row;
    if (start == kNoRow || !reader_.find(start, row)) return 0;
    rows_[0] = row;
    size_t found = 1;
    while (found < request_.length && reader_.follow(row)) rows_[found++] = row;
    return found;
  }

  void finish(size_t index, size_t found) const {
    const size_t first = index * request_.length, missing = request_.length - found;
    for (size_t c = 0; c < out_.columns.size() && missing > 0; ++c) {
      const size_t bytes = buffer_.value_bytes(c);
      if (out_.columns[c] != nullptr) std::memset(out_.columns[c] + (first + found) * bytes, 0, missing * bytes);
    }
    for (size_t i = 0; i < request_.length; ++i) {
      if (out_.ids != nullptr) out_.ids[first + i] = i < found ? rows_[i].id : kNoRow;
      if (out_.mask != nullptr) out_.mask[first + i] = i < found;
    }
    if (out_.lengths != nullptr) out_.lengths[index] = found;
  }

  const ReplayBuffer& buffer_;
  const EpisodeReader reader_;
  const SequenceRequest request_;
  const SequenceArrays out_;
  std::vector<EpisodeRow> rows_;  // of one sequence
};

}  // namespace

void expect_episodes(const ReplayBuffer& buffer, std::string_view function) {
  if (buffer.links() != nullptr) return;
  throw Error(
      "[replay] {}: expected a buffer with episodes, found one without; create it with terminal=\"name of a column\", "
      "truncated=\"name of a column\" or both",
      function);
}

void admit_sequences(const ReplayBuffer& buffer, const SequenceRequest& request, const SequenceArrays& out,
                     const Wait& wait) {
  expect_episodes(buffer, "sample_sequences");
  check_request(buffer, request.starts);
  const uint64_t max = std::min<uint64_t>(kMaxLength, buffer.capacity());
  if (request.length < 1 || request.length > max) {
    throw Error("[replay] sample_sequences: length: expected 1 to {} rows, found {}", max, request.length);
  }
  if (out.columns.size() != buffer.schema().columns().size()) {
    throw Error("[replay] sample_sequences: expected {} columns, found {}", buffer.schema().columns().size(),
                out.columns.size());
  }
  admit_samples(buffer, request.starts, request.starts.rows * request.length, wait);
}

void sample_sequences(const ReplayBuffer& buffer, const SequenceRequest& request, const SequenceArrays& out,
                      uint64_t seed, uint64_t call) {
  const std::string wanted =
      request.pad ? "a row that can be read" : fmt::format("a row with {} more in its episode", request.length - 1);
  draw_intact(buffer, [&] {
    Drawer drawer(buffer, request.starts, seed, call, wanted);
    SequenceSampler sampler(buffer, request, out);
    draw_rows(
        drawer, request.starts, {nullptr, out.ages, out.weights},
        [&](size_t index, const Drawn& drawn, const Drawn& following) { return sampler.use(index, drawn, following); });
  });
  buffer.count_sampled(request.starts.rows * request.length);
}

}  // namespace quern::replay
