#include "nn/gradient.h"

#include <algorithm>

#include "kernels/embedding.h"
#include "kernels/vector_ops.h"
#include "nn/regions.h"

namespace quern {

Gradient::Gradient(const ParameterLayout& layout, size_t workers)
    : layout_(&layout),
      workers_(workers),
      joins_(layout.tensors()[0].segments + layout.tensors()[1].segments),
      width_(layout.tensors()[0].shape[1]),
      values_(layout.size(), Fill::kZero),
      input_rows_(layout.tensors()[0].size, Fill::kZero),
      touched_(layout.tensors()[0].shape[0], 0),
      norms_(layout.segments().size(), 0.0),
      stats_(layout.segments().size()),
      tickets_(std::make_unique<Signal[]>(layout.segments().size() + 1)) {}

size_t Gradient::bytes_of(const ParameterLayout& layout) {
  return (layout.size() + layout.tensors()[0].size) * sizeof(float);
}

// A pass has about 4 or more layers of 4 matrices. Up to 4 workers settle into a stagger of the largest matrix of a
// block, 4 C x C, at little cost; more workers get smaller pieces. The token table is many times larger and is also
// split into pieces of that size. One product of 768 x 3,072 runs at 154 GFLOPS, but at 136 in 16 pieces, because the
// right operand is then read from beyond L2.
size_t Gradient::segments_at_once(size_t tensor) const {
  const size_t piece = 4 * width_ * width_ / std::max<size_t>(1, workers_ / 4);
  const TensorInfo& info = layout_->tensors()[tensor];
  return std::clamp<size_t>(info.segments * piece / info.size, 1, info.segments);
}

void Gradient::wait_for(Signal& ticket, uint32_t turn, const Member& member) {
  if (ticket.value() == turn) return;
  const Timed timed(kTurnWait);
  const double start = member.waits != nullptr ? seconds_now() : 0;
  for (uint32_t now; (now = ticket.value()) != turn;) {
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
    ticket.await_change(now);
  }
  if (member.waits != nullptr) member.waits->tickets.add(seconds_now() - start);
}

void Gradient::take_norm(size_t segment) {
  const Segment& s = layout_->segments()[segment];
  const float* values = values_.data() + s.offset;
  if (!measures_) {
    norms_[segment] = kernels::squared_norm(values, s.size);
    return;
  }
  stats_[segment] = kernels::tensor_stats(values, s.size);
  norms_[segment] = stats_[segment].squares;
}

void Gradient::enter(size_t segment, const Turn& turn, const Member& member) {
  wait_for(tickets_[segment], turn.number, member);
}

void Gradient::leave(size_t segment, const Turn& turn) {
  if (turn.last && segment >= joins_) take_norm(segment);
  tickets_[segment].set(turn.number + 1);
}

void Gradient::enter_inputs(const Turn& turn, const Member& member) {
  wait_for(tickets_[layout_->segments().size()], turn.number, member);
  if (turn.first) std::fill_n(values_.data() + layout_->position_table(), layout_->tensors()[1].size, 0.0f);
}

void Gradient::add_inputs(const int32_t* tokens, const float* dx, size_t T) {
  for (size_t t = 0; t < T; ++t) touched_[static_cast<size_t>(tokens[t])] = 1;
  kernels::embedding_backward(tokens, dx, input_rows_.data(), values_.data() + layout_->position_table(), T, width_);
}

void Gradient::leave_inputs(const Turn& turn) { tickets_[layout_->segments().size()].set(turn.number + 1); }

void Gradient::join(size_t segment) {
  const Segment& s = layout_->segments()[segment];
  const Timed timed(kJoin, static_cast<double>(s.size * sizeof(float)));
  if (s.tensor == 0) {
    for (size_t row = s.row; row < s.row + s.rows; ++row) {
      if (touched_[row] == 0) continue;
      float* inputs = input_rows_.data() + row * width_;
      kernels::accumulate(values_.data() + layout_->token_table() + row * width_, inputs, width_);
      std::fill_n(inputs, width_, 0.0f);
      touched_[row] = 0;
    }
  }
  take_norm(segment);
}

void Gradient::join_all() {
  for (size_t segment = 0; segment < joins_; ++segment) join(segment);
}

double Gradient::squared_norm() const {
  double sum = 0;
  for (const double norm : norms_) sum += norm;
  return sum;
}

void Gradient::stop() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  for (size_t i = 0; i <= layout_->segments().size(); ++i) {
    tickets_[i].add(1u << 31);  // a sleeper only checks again when the number changes; this one is no worker's turn
  }
}

}  // namespace quern
