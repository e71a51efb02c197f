#include "replay/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "replay/row_copy.h"

namespace quern::replay {
namespace {

constexpr size_t kBlock = 64;  // rows drawn ahead: the next one is known, so that its bytes can be prefetched

// Turns probabilities into importance weights, in place: (size * probability)^-beta divided by the largest of them,
// which is that of the smallest probability, so that the size cancels out.
void weigh(std::span<float> chances, double beta) {
  const double min = *std::min_element(chances.begin(), chances.end());
  for (float& chance : chances) chance = static_cast<float>(std::pow(min / chance, beta));
}

}  // namespace

Sampler::Sampler(const ReplayBuffer& buffer, uint64_t seed) : buffer_(&buffer), seed_(seed) {
  for (const Column& column : buffer.schema().columns()) {
    columns_.push_back({column.value_bytes(), column.stored_bytes()});
  }
}

void Sampler::sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait) {
  admit(request, out, wait);
  sample_admitted(request, out);
}

// Rejects impossible requests before they are counted; after a wait there are at least `minimum` rows.
void Sampler::admit(const SampleRequest& request, const SampleArrays& out, const Wait& wait) const {
  check(request, out);
  const RateLimit& limit = buffer_->options().limit;
  if (!limit.applies()) return;
  const uint64_t rows = std::max(buffer_->size(), limit.minimum);
  if (request.rule == Rule::kWithoutReplacement && request.rows > rows) {
    throw Error("[replay] sample: without replacement: expected at least {} rows in the buffer, found {}", request.rows,
                rows);
  }
  if (buffer_->limiter().admit_samples(request.rows, wait)) return;
  throw TimedOut("[replay] waited too long for rows (the buffer's rate limit)");
}

void Sampler::sample_admitted(const SampleRequest& request, const SampleArrays& out) {
  try {
    draw(request, out);
  } catch (const Error&) {
    buffer_->expect_intact();  // if the memory is lost, report that instead of an empty buffer
    throw;
  }
  buffer_->expect_intact();
  ++draws_;
}

void Sampler::draw(const SampleRequest& request, const SampleArrays& out) {
  Drawer drawer(*buffer_, request, seed_, draws_);
  std::array<Drawn, kBlock + 1> block;  // plus an end marker
  for (size_t first = 0; first < request.rows; first += kBlock) {
    const size_t rows = std::min(kBlock, request.rows - first);
    if (first > 0) drawer.look();
    for (size_t i = 0; i < rows; ++i) block[i] = drawer.next();
    block[rows] = {};
    for (size_t i = 0; i < rows; ++i) {
      for (uint64_t tries = 1; !copy(out, first + i, block[i], block[i + 1]); ++tries) block[i] = drawer.again(tries);
      if (out.ids != nullptr) out.ids[first + i] = block[i].id;
      if (out.ages != nullptr) out.ages[first + i] = block[i].age;
      if (out.weights != nullptr) out.weights[first + i] = block[i].chance;
    }
  }
  if (request.rule == Rule::kPrioritised && out.weights != nullptr) weigh({out.weights, request.rows}, request.beta);
}

void Sampler::check(const SampleRequest& request, const SampleArrays& out) const {
  if (request.rows == 0) throw Error("[replay] sample: expected 1 row or more, found 0");
  if (out.columns.size() != columns_.size()) {
    throw Error("[replay] sample: expected {} columns, found {}", columns_.size(), out.columns.size());
  }
  if (request.rule == Rule::kPrioritised && buffer_->tree() == nullptr) {
    throw Error("[replay] sample: expected a prioritised buffer, found one that is not");
  }
  if (request.rule == Rule::kPrioritised && !(std::isfinite(request.beta) && request.beta >= 0)) {
    throw Error("[replay] sample: beta: expected a finite number, 0 or more, found {}", request.beta);
  }
  if (request.rule == Rule::kRecent && !(std::isfinite(request.half_life) && request.half_life > 0)) {
    throw Error("[replay] sample: half_life: expected a finite number above 0, found {}", request.half_life);
  }
}

// Returns false if the row cannot be read.
bool Sampler::copy(const SampleArrays& out, size_t row, const Drawn& drawn, const Drawn& following) const {
  if (drawn.id == kNoRow) return false;
  return buffer_->ring().read(drawn.id, [&](uint64_t slot) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (out.columns[c] == nullptr) continue;
      if (following.id != kNoRow) {
        prefetch_row(buffer_->stored(c, following.id % buffer_->capacity()), columns_[c].stored_bytes);
      }
      buffer_->load(c, slot, out.columns[c] + row * columns_[c].value_bytes);
    }
  });
}

}  // namespace quern::replay
