#include "replay/sampler.h"

#include "core/error.h"
#include "replay/draw_loop.h"
#include "replay/row_copy.h"

namespace quern::replay {

Sampler::Sampler(const ReplayBuffer& buffer, uint64_t seed) : buffer_(&buffer), seed_(seed) {
  for (const Column& column : buffer.schema().columns()) {
    columns_.push_back({column.value_bytes(), column.stored_bytes()});
  }
}

void Sampler::sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait) {
  admit(request, out, wait);
  sample_admitted(request, out);
}

void Sampler::admit(const SampleRequest& request, const SampleArrays& out, const Wait& wait) const {
  check(request, out);
  admit_samples(*buffer_, request, request.rows, wait);
}

void Sampler::sample_admitted(const SampleRequest& request, const SampleArrays& out) {
  draw_intact(*buffer_, [&] {
    Drawer drawer(*buffer_, request, seed_, draws_);
    draw_rows(drawer, request, {out.ids, out.ages, out.weights},
              [&](size_t row, const Drawn& drawn, const Drawn& following) { return copy(out, row, drawn, following); });
  });
  buffer_->count_sampled(request.rows);
  ++draws_;
}

void Sampler::check(const SampleRequest& request, const SampleArrays& out) const {
  check_request(*buffer_, request);
  if (out.columns.size() == columns_.size()) return;
  throw Error("[replay] sample: expected {} columns, found {}", columns_.size(), out.columns.size());
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
