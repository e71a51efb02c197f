// What the ranks of a run send each other during a step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/bounded_queue.h"
#include "core/signal.h"
#include "dist/communicator.h"
#include "nn/gradient.h"
#include "optim/optimizer.h"
#include "parallel/step_cut.h"

namespace quern::train {

// Every unit of an update belongs to one rank, its owner: balanced by size, and the same on every rank.
class Ownership {
 public:
  Ownership(const nn::ParameterTable& table, std::span<const UpdateUnit> units, size_t ranks);

  size_t owner_of_segment(size_t segment) const { return segment_owner_[segment]; }
  // In the order of the optimizer, and of the table.
  const std::vector<size_t>& units_of(size_t rank) const { return units_[rank]; }
  const std::vector<size_t>& segments_of(size_t rank) const { return segments_[rank]; }

 private:
  std::vector<size_t> segment_owner_;
  std::vector<std::vector<size_t>> units_, segments_;
};

// Memory for segments of the gradient while their parts arrive from other ranks.
struct ExchangeSlots {
  ExchangeSlots(const LaneShare& share, size_t largest_segment);

  size_t count;   // as many as hide the latency of messages, within some memory
  size_t floats;  // of each
  size_t bytes() const { return count * floats * sizeof(float); }
};

// One thread does all communication, so that workers never wait for it. During backward, each segment to which a rank
// has added its lanes goes to the segment's owner, which adds up what it receives by the tree of lanes. When all is
// done, everyone gets the norms and the losses, and decides alike. Owners then update their units, and send each to all
// others as soon as it is done.
// A rank sends 4 bytes per parameter that it does not own (times the number of its nodes in the tree), and 4 bytes for
// each that it owns to every other rank.
class RankExchange : public nn::Gradient::Receiver {
 public:
  struct Numbers {
    std::span<double> losses;   // of each sequence of the step, by parts: on entry those of this rank
    std::span<Change> changes;  // per segment: on entry those of this rank's segments
  };

  // The arguments must outlive the exchange. Between steps the caller may use the communicator, but not during one.
  RankExchange(dist::Communicator& ranks, const StepCut& cut, std::span<const UpdateUnit> units, nn::Gradient& gradient,
               std::span<float> weights, const Numbers& numbers);
  RankExchange(const RankExchange&) = delete;
  RankExchange& operator=(const RankExchange&) = delete;
  ~RankExchange();

  const Ownership& ownership() const { return owners_; }
  const std::vector<size_t>& own_units() const { return owners_.units_of(ranks_.rank()); }
  const std::vector<size_t>& own_segments() const { return owners_.segments_of(ranks_.rank()); }
  size_t foreign_units() const { return foreign_.size(); }

  // At the beginning of a step.
  void begin(bool measured);
  // By workers: the segment has this rank's lanes.
  void take(size_t segment) override;
  // After the last segment of this rank, and all its losses. Calls `then`, on another thread, when the gradient is
  // complete: own segments, all norms and losses, and statistics if measured.
  void finish_gradient(std::function<void()> then) { start(Command::kNumbers, std::move(then)); }
  // Before this rank updates its units.
  void begin_weights() { start(Command::kUpdate, {}); }
  // By workers: the unit, one of this rank's, is updated.
  void give_unit(size_t unit) { updated_.push(static_cast<uint32_t>(unit)); }
  // By workers: waits for the next unit of another rank, in the order in which they arrive. To be called as often as
  // there are such units. nullopt if the exchange has failed or was stopped.
  std::optional<uint32_t> next_arrived() { return arrived_.pop(); }
  // After this rank has updated its units. Calls `then` when all weights have been received and sent.
  void finish_weights(std::function<void()> then) { start(Command::kWeights, std::move(then)); }

  // Between steps: rank 0 receives the segments of the gradient that others own.
  void gather_gradient();

  // Ends all current and future waits of workers, for when one of them has failed. Any thread.
  void stop() noexcept { arrived_.close(); }
  // Ends the thread, which may still be inside a call of `then`. Idempotent.
  void end();

  // Called on the thread of the exchange when it fails.
  void on_failure(std::function<void()> call) { failed_ = std::move(call); }
  void rethrow() const;
  // Bytes that this rank has sent so far.
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  enum class Command : uint8_t { kNone, kGradient, kNumbers, kUpdate, kWeights };
  struct Slot;  // of an own segment whose parts are on their way

  void start(Command command, std::function<void()> then);
  void main() noexcept;
  void work();
  void exchange_gradient();
  std::optional<uint32_t> next_ready();
  bool dispatch(size_t segment);
  void receive_parts(Slot& slot, size_t segment);
  bool check_parts(Slot& slot);
  void add_up(Slot& slot);
  void exchange_numbers();
  void exchange_weights();
  void receive_units();
  std::span<float> weights_of(size_t unit) const;
  uint32_t unit_tag(size_t unit) const;
  template <typename T>
  void share_segments(std::span<T> values, uint32_t tag);
  bool check_sends();
  // Removes those at the front that are done, and returns whether there are any: they are done about in order, and to
  // ask for hundreds takes longer than to move one.
  template <typename T, typename IsDone>
  static bool take_done(std::deque<T>& pending, IsDone is_done);
  void send(size_t to, uint32_t tag, std::span<const std::byte> data);

  dist::Communicator& ranks_;
  StepCut cut_;
  std::span<const UpdateUnit> units_;
  nn::Gradient& gradient_;
  const nn::ParameterTable& table_;
  std::span<float> weights_;
  Numbers numbers_;
  Ownership owners_;
  std::vector<size_t> foreign_;        // units, those of rank 0 first
  std::vector<size_t> nodes_of_rank_;  // of the lane tree, that each rank sends
  std::vector<size_t> merges_;         // after each of these nodes, in their order

  BoundedQueue<uint32_t> ready_;  // segments
  std::deque<size_t> own_ready_;  // that have no slot yet
  std::vector<std::unique_ptr<Slot>> slots_;
  size_t own_left_ = 0, ready_left_ = 0;
  std::deque<dist::Communicator::Request> sends_;
  struct Arriving {
    size_t unit;
    dist::Communicator::Request request;
  };
  std::deque<Arriving> arriving_;
  BoundedQueue<uint32_t> updated_, arrived_;  // units
  bool measured_ = false;

  Signal commands_;
  std::atomic<Command> command_{Command::kNone};
  std::function<void()> then_, failed_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<bool> has_failed_{false}, ending_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace quern::train
