#include "learn/row_batches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/philox.h"
#include "selfplay/random_words.h"
#include "selfplay/rows.h"
#include "selfplay/symmetry.h"

namespace quern::learn {
namespace {

constexpr double kSumTolerance = 1e-3;

std::byte* bytes_of(std::span<float> values) { return std::as_writable_bytes(values).data(); }

// Shares of 0 or more with sum 1; a share of -1 does not count, if `masked`.
void check_shares(uint64_t id, const char* column, std::span<const float> shares, bool masked) {
  double sum = 0;
  for (const float share : shares) {
    if (masked && share == -1.0f) continue;
    if (!(share >= 0.0f)) {
      throw Error("[selfplay] row {} of the buffer: {}: expected {}, found {}", id, column,
                  masked ? "shares from 0 to 1, or -1 for a move that is not legal" : "probabilities", share);
    }
    sum += static_cast<double>(share);
  }
  if (std::abs(sum - 1) <= kSumTolerance) return;
  throw Error("[selfplay] row {} of the buffer: {}: expected a sum of 1, found {}", id, column, sum);
}

void check_row(uint64_t id, std::span<const float> planes, std::span<const float> policy,
               std::span<const float> outcome) {
  const auto strange = std::ranges::find_if(planes, [](float x) { return !std::isfinite(x); });
  if (strange != planes.end()) {
    throw Error("[selfplay] row {} of the buffer: planes: expected finite numbers, found {}", id, *strange);
  }
  check_shares(id, "policy", policy, true);
  check_shares(id, "outcome", outcome, false);
}

}  // namespace

class RowBatches::Reader final : public data::BatchReader {
 public:
  explicit Reader(const RowBatches& source)
      : source_(source),
        planes_(source.game_.spec().planes * source.game_.spec().squares()),
        policy_(source.game_.spec().actions) {}

  void read(data::Batch& batch) override {
    if (batch.step != step_) {
      step_ = batch.step;
      ++steps_;
      if (source_.options_.ahead != nullptr) source_.options_.ahead->await(steps_);
    }
    const auto row = [](std::span<float> column, size_t width, size_t index) {
      return column.subspan(index * width, width);
    };
    for (uint32_t i = 0; i < batch.sequences; ++i) {
      read_row(batch.step, batch.first + i, row(batch.columns.floats(kPlanesColumn), planes_.size(), i),
               row(batch.columns.floats(kPolicyColumn), policy_.size(), i),
               row(batch.columns.floats(kOutcomeColumn), 3, i));
    }
    source_.buffer_.count_sampled(batch.sequences);
  }

 private:
  void read_row(uint32_t step, uint32_t sample, std::span<float> planes, std::span<float> policy,
                std::span<float> outcome) {
    const games::GameShape& game = source_.game_;
    const RowOptions& options = source_.options_;
    const size_t symmetry = options.symmetries ? selfplay::draw_symmetry(game, options.seed, step, sample) : size_t{0};
    if (symmetry == 0) return draw_row(step, sample, planes, policy, outcome);
    draw_row(step, sample, planes_, policy_, outcome);
    selfplay::apply_symmetry(game, symmetry, planes_, policy_, planes, policy);
  }

  // A row that was overwritten between the draw and the copy, or is still being written, is drawn again.
  void draw_row(uint32_t step, uint32_t sample, std::span<float> planes, std::span<float> policy,
                std::span<float> outcome) {
    const replay::ReplayBuffer& buffer = source_.buffer_;
    selfplay::RandomWords words(RandomStream{source_.options_.seed, Purpose::kTrainedRows, 0, step, sample});
    const std::array columns = {bytes_of(planes), bytes_of(policy), bytes_of(outcome)};
    for (;;) {
      const uint64_t end = buffer.total_added(), size = buffer.size();
      if (size == 0) throw Error("[selfplay] expected positions in the replay buffer, found none");
      const uint64_t id = end - size + words.below(static_cast<uint32_t>(size));
      if (!buffer.read(id, columns)) {
        buffer.expect_intact();
        continue;
      }
      if (source_.options_.checked) check_row(id, planes, policy, outcome);
      return;
    }
  }

  const RowBatches& source_;
  std::vector<float> planes_, policy_;  // of a row before its symmetry
  std::optional<uint32_t> step_;        // of the last batch
  uint64_t steps_ = 0;
};

RowBatches::RowBatches(const games::GameShape& game, replay::ReplayBuffer& buffer, RowOptions options)
    : game_(game), buffer_(buffer), options_(std::move(options)) {
  selfplay::expect_rows_of(game.spec(), buffer);
}

std::vector<ColumnSpec> RowBatches::columns() const {
  const games::GameSpec& game = game_.spec();
  return {{kPlanesColumn, ColumnType::kFloat32, game.planes * game.squares()},
          {kPolicyColumn, ColumnType::kFloat32, game.actions},
          {kOutcomeColumn, ColumnType::kFloat32, 3}};
}

std::unique_ptr<data::BatchReader> RowBatches::reader(const data::StreamPosition&) const {
  return std::make_unique<Reader>(*this);
}

}  // namespace quern::learn
