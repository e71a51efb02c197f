// Training steps: batches, forward, loss, backward, gradient accumulation, optimizer. Results are bit-identical for any
// number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/state.h"
#include "config/config.h"
#include "data/batch_reader.h"
#include "data/batch_source.h"
#include "data/prefetcher.h"
#include "dist/communicator.h"
#include "evaluate/evaluate.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "parallel/workers.h"
#include "train/batch_broadcast.h"
#include "train/plan.h"
#include "train/rank_exchange.h"
#include "train/step_context.h"
#include "train/step_report.h"

namespace quern::train {

struct TrainerOptions {
  dist::Communicator* ranks = nullptr;  // processes that train together; the plan must be made for this one of them
  size_t sources = 1;                   // of the data, for data.broadcast
  // For benchmarks and tests only:
  size_t teams = 0;  // 0: as many as there is work for; 1: all threads synchronize after every operation
  std::function<void(const Task&, const Member&)> before_task = {};  // called by the workers
};

// The workers' time during steps, summed over threads and steps.
struct WorkerTimes {
  double total = 0;  // threads x seconds of steps
  WaitTimes waits;

  // A wait that began before a step counts in the step in which it ends, so on a busy machine waits can exceed the
  // total.
  double utilisation() const { return total > 0 ? std::max(0.0, 1 - waits.sum() / total) : 0; }
};

// A step needs no lock or barrier. The calling thread feeds micro-batches, prefetched by a background thread, into the
// workers' queue. A worker takes a micro-batch through forward and backward on its own and adds weight gradients in its
// turn. The worker that finishes the last task of a phase enqueues those of the next one, and in the end wakes the
// caller. With fewer micro-batches than threads, several threads work on each as a team.
//
// Of several ranks, each computes its lanes of the step and updates the weights of which it is the owner; all call the
// same functions in the same order.
class Trainer {
 public:
  // `model`, `batches` and `state` must outlive the trainer. `plan` must be made for this config and model. Every step
  // advances `state`.
  Trainer(const RunConfig& config, const Plan& plan, nn::Model& model, const data::BatchSource& batches,
          RunState& state, TrainerOptions options = {});
  ~Trainer();

  // Runs the next step. Does not allocate once warm. Rethrows an exception of a worker; the weights are then
  // inconsistent and the trainer can only be destroyed, so resume from a checkpoint.
  StepReport step();

  // The mean loss over the windows, using the threads and memory of steps. Throws like step().
  double evaluate(const data::EvaluationWindows& windows);

  // Call after changing the state, the weights or the moments: continues from there.
  void resume();

  // The functions below are called between steps.

  // For diagnosis. If the last step was an incident (StepReport::trouble), weights and moments are those before it: to
  // undo the step, restore context().before and resume().
  StepContext context();
  // Of several ranks, all call it: the gradient of the last step is then complete on rank 0.
  void gather_gradient() {
    if (exchange_ != nullptr) exchange_->gather_gradient();
  }
  Optimizer& optimizer() { return *optimizer_; }
  WorkerTimes times() const { return times_; }
  // Weights and gradients that this rank has sent to others so far.
  uint64_t bytes_sent() const { return exchange_ == nullptr ? 0 : exchange_->bytes_sent(); }
  // Reads a system file, which takes 5 microseconds.
  MemoryUse memory() const;
  // Changes diagnostics.health_interval; 0 for never.
  void measure_every(uint64_t steps) { config_.diagnostics.health_interval = steps; }
  // Profiles the workers' time in steps as threads 0 ... plan.threads - 1 of `profile`, which must outlive the trainer;
  // null stops profiling. Evaluations are not profiled.
  void set_profile(Profile* profile);

 private:
  // A part of a step, done by all teams.
  struct Phase {
    bool (Trainer::*begin)();  // enqueues its tasks; false if there is nothing to do
    void (Trainer::*work)(const Task& task, size_t team, const Member& member);
  };
  static const std::array<Phase, 5> kPhases;

  void prepare_step();
  void prepare_batches();
  void begin_from(size_t phase);
  void run(const Task& task, size_t team, const Member& member);
  void done(const Task& task);
  void advance_state();
  StepReport report() const;

  bool feed_micro_batches();
  data::Batch* next_batch(size_t index);
  void train_micro_batch(const Task& task, size_t team, const Member& member);
  bool begin_join();
  void join_segments(const Task& task, size_t team, const Member& member);
  bool begin_exchange();
  bool begin_update();
  void update_units(const Task& task, size_t team, const Member& member);
  void update(size_t unit, size_t thread);
  void await_unit(const Member& member);
  void repack(size_t unit);
  bool begin_share();
  void begin_after(TaskKind phase) { begin_from(static_cast<size_t>(phase) + 1); }
  void rethrow();

  void sum_losses();
  Trouble judge() const;
  bool updates() const { return current_.update.finite && current_.trouble == Trouble::kNone; }
  bool submit_to_every_team(TaskKind kind, size_t pieces);
  size_t next_piece() { return next_piece_.fetch_add(1, std::memory_order_relaxed); }

  // Of the step that is running, or of the last one.
  struct Current {
    double rate = 0, loss = 0, spike_z = 0, data_wait = 0;
    std::array<double, nn::kMaxLossParts> loss_parts = {};
    uint64_t counted_targets = 0;
    Trouble trouble = Trouble::kNone;
    UpdateReport update = {};
    bool measured = false;  // whether it collects statistics; set before its first task is submitted
  };

  RunConfig config_;
  TrainerOptions options_;
  nn::Model& model_;
  const data::BatchSource& batches_;
  RunState& state_;
  RunState before_;  // the last step
  quern::Schedule schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  Plan plan_;
  std::vector<StepPart> parts_;  // micro-batches
  nn::Gradient gradient_;
  // Created by the first step. With data.broadcast, rank 0 alone has a prefetcher.
  std::unique_ptr<data::Prefetcher> prefetcher_;
  std::unique_ptr<BatchBroadcast> broadcast_;
  std::deque<nn::Workspace> work_;  // per team
  std::vector<double> losses_;      // of each sequence of the step, by parts
  std::vector<Change> changes_;     // per segment
  Current current_;
  uint32_t turns_done_ = 0;
  BufferPool pool_;                      // for evaluations
  std::optional<LossTasks> evaluation_;  // during an evaluation
  WorkerTimes times_;
  Profile* profile_ = nullptr;

  alignas(kCacheLine) std::atomic<size_t> remaining_{0};   // tasks of the current phase
  alignas(kCacheLine) std::atomic<size_t> next_piece_{0};  // of the phase's segments or units
  size_t pieces_ = 0;                                      // set before the phase's tasks are submitted
  Signal finished_;                                        // steps, or failures
  std::unique_ptr<RankExchange> exchange_;                 // null for one rank
  std::unique_ptr<Workers> workers_;                       // last member: its threads use all of the above
};

}  // namespace quern::train
