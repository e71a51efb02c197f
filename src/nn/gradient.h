// The gradient of all parameters: one buffer to which micro-batches are added in order, whichever worker computes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/signal.h"
#include "core/team.h"
#include "kernels/tensor_stats.h"
#include "nn/micro_batch.h"
#include "nn/parameters.h"

namespace quern {

// Every segment has a ticket: the number of the micro-batch that may add to it next. A worker waits for its turn, adds
// in place and passes the ticket on. A segment therefore has one owner at a time, nothing is copied or reduced
// afterwards, memory does not grow with the number of workers, and sums are in the order of the micro-batches. The
// worker with the lowest turn never waits, so there is always progress as long as workers take micro-batches in order.
//
// The token table has two contributions, from the output projection and from the input rows. Each is its own ordered
// sum; join() adds them up once at the end of a step.
class Gradient {
 public:
  // `workers` is the number of workers, each of which computes micro-batches on its own.
  explicit Gradient(const ParameterLayout& layout, size_t workers = 1);

  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }
  // Size in bytes of a gradient with this layout.
  static size_t bytes_of(const ParameterLayout& layout);

  // How many segments of a tensor a worker should add to in one product. With fewer, workers can follow each other more
  // closely; with more, the product is faster. Affects only speed.
  size_t segments_at_once(size_t tensor) const;

  // Waits for the turn on a segment; throws Stopped after stop(). The caller may then add to the segment, or overwrite
  // it if the turn is the first of its step.
  void enter(size_t segment, const Turn& turn, const Member& member);
  // Passes the segment on. The last turn of a step first computes its squared norm, while it is in the cache.
  void leave(size_t segment, const Turn& turn);

  // In turn: adds dx (T, C) of a sequence to the rows of its tokens and positions.
  void enter_inputs(const Turn& turn, const Member& member);
  void add_inputs(const int32_t* tokens, const float* dx, size_t T);
  void leave_inputs(const Turn& turn);

  // After the last turn of a step, once for each of 0 ... joins() - 1, on any thread: completes a segment of the tables
  // and computes its norm.
  size_t joins() const { return joins_; }
  void join(size_t segment);
  void join_all();

  // The sum of squares of the entire gradient, segments in order; after the last join().
  double squared_norm() const;

  // Whether the following steps collect segment statistics along with the norms; call between steps. Norms are
  // bit-identical either way.
  void measure(bool on) { measures_ = on; }
  // Of a step that collected them, after the last join().
  const kernels::TensorStats& stats(size_t segment) const { return stats_[segment]; }

  // Ends all current and future waits, for when a worker failed.
  void stop() noexcept;

 private:
  void wait_for(Signal& ticket, uint32_t turn, const Member& member);
  void take_norm(size_t segment);

  const ParameterLayout* layout_;
  size_t workers_;
  size_t joins_;
  size_t width_;
  AlignedBuffer<float> values_;
  AlignedBuffer<float> input_rows_;  // (V, C); zero except for the rows in touched_
  std::vector<uint8_t> touched_;     // (V)
  std::vector<double> norms_;
  std::vector<kernels::TensorStats> stats_;  // one per segment
  bool measures_ = false;
  std::unique_ptr<Signal[]> tickets_;  // one per segment, and one for the inputs
  std::atomic<bool> stopped_{false};
};

}  // namespace quern
