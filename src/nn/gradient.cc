#include "nn/gradient.h"

#include <algorithm>
#include <utility>

#include "kernels/vector_ops.h"
#include "nn/regions.h"

namespace quern::nn {

Gradient::Gradient(const ParameterTable& table, size_t workers, LaneTree lanes)
    : table_(&table),
      workers_(workers),
      lanes_(std::move(lanes)),
      values_(table.trainable_size(), Fill::kZero),
      rows_index_(table.all().size()),
      norms_(table.segments().size(), 0.0),
      stats_(table.segments().size()) {
  for (size_t i = 1; i < lanes_.buffers(); ++i) more_.emplace_back(table.trainable_size(), Fill::kZero);
  for (size_t i = 0; i < table.all().size(); ++i) {
    const Parameter& parameter = table.all()[i];
    if (!parameter.trainable) continue;
    if (!parameter.lookup) {
      if (parameter.is_matrix()) largest_product_ = std::max(largest_product_, parameter.size);
      continue;
    }
    rows_index_[i] = rows_.size();
    rows_.push_back({.parameter = static_cast<ParameterId>(i), .values = {}, .touched = {}});
    if (parameter.tied()) {
      rows_.back().values = AlignedBuffer<float>(parameter.size, Fill::kZero);
      rows_.back().touched.assign(parameter.rows(), 0);
    }
    for (size_t s = 0; s < parameter.segments; ++s) joins_.push_back(parameter.first_segment + s);
  }
  tickets_ = std::make_unique<Signal[]>(table.segments().size() + rows_.size());
}

size_t Gradient::bytes_of(const ParameterTable& table, const LaneTree& lanes) {
  size_t floats = lanes.buffers() * table.trainable_size();
  for (const Parameter& parameter : table.all()) {
    if (parameter.trainable && parameter.tied()) floats += parameter.size;
  }
  return floats * sizeof(float);
}

// A pass has about 4 or more layers of 4 matrices. Up to 4 workers settle into a stagger of the largest matrix of a
// block at little cost; more workers get smaller pieces. A token table is many times larger and is also split into
// pieces of that size. One product of 768 x 3,072 runs at 154 GFLOPS, but at 136 in 16 pieces, because the right
// operand is then read from beyond L2.
size_t Gradient::segments_per_product(ParameterId id) const {
  const size_t piece = largest_product_ / std::max<size_t>(1, workers_ / 4);
  const Parameter& parameter = (*table_)[id];
  return std::clamp<size_t>(parameter.segments * piece / parameter.size, 1, parameter.segments);
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

// The segment has its own lanes.
void Gradient::finish(size_t segment) { receiver_ != nullptr ? receiver_->take(segment) : take_norm(segment); }

void Gradient::take_norm(size_t segment) {
  const Segment& s = table_->segments()[segment];
  const float* values = values_.data() + s.offset;
  if (!measures_) {
    norms_[segment] = kernels::squared_norm(values, s.size);
    return;
  }
  stats_[segment] = kernels::tensor_stats(values, s.size);
  norms_[segment] = stats_[segment].squares;
}

// Whether the lane is summed above the buffers of the lanes before it.
bool Gradient::follows_closely(size_t lane) const {
  return lane == lanes_.own().begin || lanes_[lane].buffer > lanes_[lane - 1].buffer;
}

// Rows of a tied table are added to its products at the end of a lane, when all of its turns have added both. The
// products of the next lane that uses the same buffer must wait for that.
void Gradient::enter(size_t segment, const Turn& turn, const Member& member) {
  const ParameterId id = table_->segments()[segment].parameter;
  if (turn.first && !follows_closely(turn.lane) && (*table_)[id].lookup) {
    wait_for(tickets_[rows_ticket(id)], turn.number, member);
  }
  wait_for(tickets_[segment], turn.number, member);
}

void Gradient::leave(size_t segment, const Turn& turn) {
  const Segment& s = table_->segments()[segment];
  if (turn.last && !(*table_)[s.parameter].lookup) {
    add_lanes(s, turn.lane);
    if (turn.lane == last_lane()) finish(segment);
  }
  tickets_[segment].set(turn.number + 1);
}

void Gradient::add_lanes(const Segment& segment, size_t lane) {
  const auto [top, merges] = lanes_[lane];
  for (size_t i = top; i > top - merges; --i) {
    const Timed timed(kLanes, static_cast<double>(segment.size * 3 * sizeof(float)));
    kernels::accumulate(buffer(i - 1) + segment.offset, buffer(i) + segment.offset, segment.size);
  }
}

size_t Gradient::rows_ticket(ParameterId id) const {
  return table_->segments().size() + rows_index_[static_cast<size_t>(id)];
}

void Gradient::enter_rows(ParameterId id, const Turn& turn, const Member& member) {
  wait_for(tickets_[rows_ticket(id)], turn.number, member);
  if (turn.first && !rows_of(id).tied()) std::fill_n(at(id, turn), (*table_)[id].size, 0.0f);
}

float* Gradient::rows(ParameterId id, const Turn& turn) {
  return rows_of(id).tied() ? rows_of(id).values.data() : at(id, turn);
}

void Gradient::touch(ParameterId id, std::span<const int32_t> rows) {
  Rows& table = rows_of(id);
  if (!table.tied()) return;
  for (const int32_t row : rows) table.touched[static_cast<size_t>(row)] = 1;
}

void Gradient::leave_rows(ParameterId id, const Turn& turn) {
  const Parameter& parameter = (*table_)[id];
  for (size_t i = 0; turn.last && turn.lane != last_lane() && i < parameter.segments; ++i) {
    const Segment& segment = table_->segments()[parameter.first_segment + i];
    add_rows(segment, turn.lane);
    add_lanes(segment, turn.lane);
  }
  tickets_[rows_ticket(id)].set(turn.number + 1);
}

void Gradient::add_rows(const Segment& segment, size_t lane) {
  Rows& table = rows_of(segment.parameter);
  const Parameter& parameter = (*table_)[segment.parameter];
  float* values = buffer(lanes_[lane].buffer) + parameter.offset;
  for (size_t row = segment.row; table.tied() && row < segment.row + segment.rows; ++row) {
    if (table.touched[row] == 0) continue;
    float* looked_up = table.values.data() + row * parameter.width();
    kernels::accumulate(values + row * parameter.width(), looked_up, parameter.width());
    std::fill_n(looked_up, parameter.width(), 0.0f);
    table.touched[row] = 0;
  }
}

void Gradient::join(size_t index) {
  const Segment& segment = table_->segments()[joins_[index]];
  const Timed timed(kJoin, static_cast<double>(segment.size * sizeof(float)));
  add_rows(segment, last_lane());
  add_lanes(segment, last_lane());
  finish(joins_[index]);
}

void Gradient::join_all() {
  for (size_t i = 0; i < joins_.size(); ++i) join(i);
}

double Gradient::squared_norm() const {
  double sum = 0;
  for (const double norm : norms_) sum += norm;
  return sum;
}

void Gradient::stop() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  for (size_t i = 0; i < table_->segments().size() + rows_.size(); ++i) {
    tickets_[i].add(1u << 31);  // a sleeper only checks again when the number changes; this one is no worker's turn
  }
}

}  // namespace quern::nn
