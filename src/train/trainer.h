// Training steps: batches, forward, loss, backward, gradient accumulation, optimizer. Results are bit-identical for any
// number of threads.
#pragma once

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
#include "evaluate/evaluate.h"
#include "nn/gpt.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "parallel/workers.h"
#include "train/plan.h"
#include "train/step_context.h"
#include "train/step_report.h"

namespace quern::train {

// For benchmarks and tests only.
struct TrainerOptions {
  size_t teams = 0;  // 0: as many as there is work for; 1: all threads synchronize after every operation
  std::function<void(const Task&, const Member&)> before_task = {};  // called by the workers
};

// The workers' time during steps, summed over threads and steps.
struct WorkerTimes {
  double total = 0;  // threads x seconds of steps
  WaitTimes waits;

  double utilisation() const { return total > 0 ? 1 - (waits.tickets + waits.team + waits.queue) / total : 0; }
};

// A step needs no lock or barrier. The calling thread feeds micro-batches, prefetched by a background thread, into the
// workers' queue. A worker takes a micro-batch through forward and backward on its own and adds weight gradients in its
// turn. The worker that finishes the step's last micro-batch enqueues the update tasks; the one that finishes the last
// of those wakes the caller. With fewer micro-batches than threads, several threads work on each as a team.
class Trainer {
 public:
  // `model`, `batches` and `state` must outlive the trainer. `plan` must be made for this config and model. Every step
  // advances `state`.
  Trainer(const RunConfig& config, const Plan& plan, Gpt& model, const data::BatchSource& batches, RunState& state,
          TrainerOptions options = {});
  ~Trainer();

  // Runs the next step. Does not allocate once warm. Rethrows an exception of a worker; the weights are then
  // inconsistent and the trainer can only be destroyed, so resume from a checkpoint.
  StepReport step();

  // Changes diagnostics.health_interval; 0 for never. Call between steps.
  void measure_every(uint64_t steps) { config_.diagnostics.health_interval = steps; }

  // For diagnosis, between steps. If the last step was an incident (StepReport::trouble), weights and moments are those
  // before it: to undo the step, restore context().before and resume().
  StepContext context();

  // The mean loss over the windows, using the threads and memory of steps. Throws like step().
  double evaluate(const data::ValidationBatches& windows);

  Optimizer& optimizer() { return optimizer_; }
  size_t threads() const { return workers_->threads(); }
  size_t teams() const { return workers_->teams(); }
  WorkerTimes times() const { return times_; }
  // Call between steps. Reads a system file, which takes 5 microseconds.
  MemoryUse memory() const;
  // Profiles the workers' time in steps as threads 0 ... threads() - 1 of `profile`, which must outlive the trainer;
  // null stops profiling. Evaluations are not profiled. Call between steps.
  void set_profile(Profile* profile);
  // Call after changing the state, the weights or the moments: continues from there.
  void resume();

 private:
  void run(const Task& task, size_t team, const Member& member);
  void done(const Task& task);
  void train(const data::Batch& batch, uint32_t index, size_t team, const Member& member);
  void update(size_t segment);
  void begin_join();
  void begin_update();
  Trouble judge();
  bool updates() const { return update_.finite && trouble_ == Trouble::kNone; }
  void submit_to_every_team(TaskKind kind, size_t pieces);
  data::Batch* next_batch(double& waited);
  double feed();

  RunConfig config_;
  TrainerOptions options_;
  Gpt& model_;
  const data::BatchSource& batches_;
  quern::Schedule schedule_;
  Optimizer optimizer_;
  Plan plan_;
  Gradient gradient_;
  std::unique_ptr<data::Prefetcher> prefetcher_;  // created by the first step
  std::deque<Workspace> work_;                    // per team
  std::vector<double> losses_;                    // per sequence of the step
  RunState& state_;
  RunState before_;                // the last step
  double loss_ = 0, spike_z_ = 0;  // of the current step
  Trouble trouble_ = Trouble::kNone;
  uint32_t turns_done_ = 0;
  UpdateReport update_;
  std::vector<Change> changes_;  // per segment
  bool measures_ = false;        // whether this step collects statistics; set before its first task is submitted
  BufferPool pool_;              // for evaluations
  std::optional<LossTasks> evaluation_;  // during an evaluation
  double rate_ = 0;
  WorkerTimes times_;
  Profile* profile_ = nullptr;

  alignas(kCacheLine) std::atomic<size_t> remaining_{0};   // tasks of the current phase
  alignas(kCacheLine) std::atomic<size_t> next_piece_{0};  // of the phase's segments
  size_t pieces_ = 0;                                      // set before the phase's tasks are submitted
  Signal finished_;                                        // steps, or failures
  std::unique_ptr<Workers> workers_;                       // last member: its threads use all of the above
};

}  // namespace quern::train
