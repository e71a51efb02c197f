// The gradient of all trainable parameters: micro-batches are added in order, whichever worker computes them.
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
#include "nn/lane_tree.h"
#include "nn/micro_batch.h"
#include "nn/parameter_table.h"

namespace quern::nn {

// Every segment has a ticket: the number of the micro-batch that may add to it next. A worker waits for its turn, adds
// in place and passes the ticket on. A segment therefore has one owner at a time, nothing is copied or reduced
// afterwards, memory does not grow with the number of workers, and sums are in the order of the micro-batches. The
// worker with the lowest turn never waits, so there is always progress as long as workers take micro-batches in order.
//
// The rows of a lookup table are added one by one, in another order of parameters than products are, so such a table
// has one more ticket. A tied table has two contributions, from products and from lookups. Each is its own ordered sum;
// they are added up at the end of a lane: in turn, or for the last lane by join().
//
// With several lanes (nn/lane_tree.h) there are as many buffers as their tree needs. The last turn of a lane adds up
// the nodes that the lane completes, segment by segment, while they are in the cache.
class Gradient {
 public:
  // Takes segments to which all own lanes have been added.
  class Receiver {
   public:
    // Called once per segment and step, by any worker. Must not wait.
    virtual void take(size_t segment) = 0;

   protected:
    ~Receiver() = default;
  };

  // `workers` is the number of workers, each of which computes micro-batches on its own. `table` must outlive the
  // gradient.
  explicit Gradient(const ParameterTable& table, size_t workers = 1, LaneTree lanes = LaneTree(1));

  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }
  // Where a turn adds to a parameter.
  float* at(ParameterId id, const Turn& turn) { return buffer(lanes_[turn.lane].buffer) + (*table_)[id].offset; }
  // Size in bytes of a gradient of this table.
  static size_t bytes_of(const ParameterTable& table, const LaneTree& lanes = LaneTree(1));

  // How many segments of a parameter a worker should add to in one product. With fewer, workers can follow each other
  // more closely; with more, the product is faster. Affects only speed.
  size_t segments_per_product(ParameterId id) const;

  // Waits for the turn on a segment; throws Stopped after stop(). The caller may then add to the segment, or overwrite
  // it if the turn is the first of its lane.
  void enter(size_t segment, const Turn& turn, const Member& member);
  // Passes the segment on. The last turn of a lane first adds it to those of other lanes, and the last turn of a step
  // computes its squared norm, while it is in the cache.
  void leave(size_t segment, const Turn& turn);

  // In turn: adds to rows of a lookup table. The caller adds to rows(), (rows, width), and names each row that it
  // changes with touch().
  void enter_rows(ParameterId id, const Turn& turn, const Member& member);
  float* rows(ParameterId id, const Turn& turn);
  void touch(ParameterId id, std::span<const int32_t> rows);
  void leave_rows(ParameterId id, const Turn& turn);

  // After the last turn of a step, once for each of 0 ... joins() - 1, on any thread: completes a segment of a lookup
  // table and computes its norm.
  size_t joins() const { return joins_.size(); }
  void join(size_t index);
  void join_all();

  // The sum of squares of the entire gradient, segments in order; after the last join().
  double squared_norm() const;

  // If other ranks have lanes of the step, `receiver` gets each segment instead of its norm being computed. The segment
  // is then in the first buffers, one for each node of the lane tree. Once the first contains the sum over all ranks,
  // complete() computes the norm; norms of segments that other ranks complete are set from outside.
  void send_to(Receiver* receiver) { receiver_ = receiver; }
  const ParameterTable& table() const { return *table_; }
  float* node(size_t index, const Segment& segment) { return buffer(index) + segment.offset; }
  void complete(size_t segment) { take_norm(segment); }
  std::span<double> norms() { return norms_; }
  std::span<kernels::TensorStats> all_stats() { return stats_; }

  // Whether the following steps collect segment statistics along with the norms; call between steps. Norms are
  // bit-identical either way.
  void measure(bool on) { measures_ = on; }
  // Of a step that collected them, after the last join().
  const kernels::TensorStats& stats(size_t segment) const { return stats_[segment]; }

  // Ends all current and future waits, for when a worker failed.
  void stop() noexcept;

 private:
  // The rows of a lookup table.
  struct Rows {
    ParameterId parameter;
    AlignedBuffer<float> values;   // (rows, width) if the table is tied; zero except for the touched rows
    std::vector<uint8_t> touched;  // (rows) if it is tied
    bool tied() const { return !touched.empty(); }
  };

  float* buffer(size_t index) { return index == 0 ? values_.data() : more_[index - 1].data(); }
  size_t last_lane() const { return lanes_.own().end - 1; }
  bool follows_closely(size_t lane) const;
  void add_rows(const Segment& segment, size_t lane);
  void add_lanes(const Segment& segment, size_t lane);
  Rows& rows_of(ParameterId id) { return rows_[rows_index_[static_cast<size_t>(id)]]; }
  size_t rows_ticket(ParameterId id) const;
  void wait_for(Signal& ticket, uint32_t turn, const Member& member);
  void finish(size_t segment);
  void take_norm(size_t segment);

  const ParameterTable* table_;
  size_t workers_;
  size_t largest_product_ = 1;  // floats of the largest matrix, not counting lookup tables
  LaneTree lanes_;
  AlignedBuffer<float> values_;             // the first buffer of the tree
  std::vector<AlignedBuffer<float>> more_;  // the others
  std::vector<Rows> rows_;
  std::vector<size_t> rows_index_;  // by ParameterId: in rows_
  std::vector<size_t> joins_;       // segments of lookup tables
  std::vector<double> norms_;
  std::vector<kernels::TensorStats> stats_;  // one per segment
  bool measures_ = false;
  Receiver* receiver_ = nullptr;
  std::unique_ptr<Signal[]> tickets_;  // one per segment, then one per lookup table
  std::atomic<bool> stopped_{false};
};

}  // namespace quern::nn
