// Steps of training: batches, forward, loss, backward, accumulate, optimise; by any number of threads, to the same
// bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/batch_reader.h"
#include "data/batch_source.h"
#include "data/prefetcher.h"
#include "nn/gpt.h"
#include "optim/loss_trend.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config.h"
#include "train/evaluate.h"
#include "train/examine.h"
#include "train/health.h"
#include "train/observer.h"
#include "train/plan.h"
#include "train/workers.h"

namespace quern::train {

// For measurements and tests; training needs none of it.
struct TrainerOptions {
  size_t teams = 0;  // 0: as many as there is work for; 1: all threads meet after every operation
  std::function<void(const Task&, const Member&)> before_task = {};  // called by the workers
};

// The workers' time in steps, summed over threads and steps.
struct WorkerTimes {
  double total = 0;  // threads x seconds of steps
  WaitTimes waits;

  double utilisation() const { return total > 0 ? 1 - (waits.tickets + waits.team + waits.queue) / total : 0; }
};

// Everything besides weights and moments that the next step depends on.
struct TrainerState {
  uint64_t steps = 0;                  // done
  uint64_t left_out = 0;               // steps whose data was passed over: the next one reads that of steps + left_out
  data::StreamPosition position = {};  // where the next step begins, for a source that needs it
  uint64_t updates = 0;                // steps done whose update was not left out
  LossTrend losses = {};
};

// The token ids of a step: (sequences, T) each.
struct StepTokens {
  std::vector<int32_t> inputs, targets;
};

// Where a step is not finite.
struct Findings {
  std::optional<BadPlace> weight;  // before the step
  std::optional<BadPlace> pass;    // forward, then backward, sequence by sequence
};

// A step flows through the threads without a lock or barrier. The calling thread feeds micro-batches, which a
// background thread has read ahead, into the workers' queue. A worker takes one through forward and backward alone and
// adds weight gradients in its turn. Whoever finishes the step's last micro-batch puts the tasks of the update into the
// queue, whoever finishes the last of those wakes the caller. With fewer micro-batches than threads, several threads
// work as a team on each.
class Trainer {
 public:
  // `model` and `batches` must outlive the trainer. `plan` is one for this config and model.
  Trainer(const RunConfig& config, const Plan& plan, Gpt& model, const data::BatchSource& batches,
          TrainerOptions options = {});
  ~Trainer();

  // The next step. Allocates nothing once warm. Throws what a worker threw; then the weights are not those of any step,
  // and the trainer can only be destroyed: go on from a checkpoint.
  StepReport step();

  // What the last step measured of the gradient, every diagnostics.health_interval steps; null otherwise. Until the
  // next step.
  const HealthReport* health() const { return health_report_; }

  // Between steps: from now on every so many steps; 0 for none.
  void measure_every(uint64_t steps) { config_.diagnostics.health_interval = steps; }

  // What the last step began with. When it was an incident (StepReport::trouble), weights and moments are still those
  // that it began with too, and resume(before_step()) takes it back.
  const TrainerState& before_step() const { return before_; }
  TrainerState state() const;
  // The losses of the last step's sequences, summed over their tokens.
  std::span<const double> sequence_losses() const { return losses_; }

  // What a step that begins in that state reads.
  StepTokens read_step(const TrainerState& at) const;
  // Repeats a step's passes with the weights as they are, sequence by sequence, until a number is not finite. By the
  // calling thread, in the memory of steps; the gradient is lost. The same for any number of threads.
  Findings examine(const StepTokens& tokens, const TrainerState& at);
  size_t sequences_at_once() const { return plan_.cut.at_once; }  // of a micro-batch

  // The mean loss over the windows, by the same threads and in the same memory as steps. Throws as step() does.
  double evaluate(const data::ValidationBatches& windows);

  uint64_t steps_done() const { return steps_done_; }
  Optimizer& optimizer() { return optimizer_; }
  const Gradient& gradient() const { return gradient_; }  // of the last step
  size_t threads() const { return workers_->threads(); }
  size_t teams() const { return workers_->teams(); }
  WorkerTimes times() const { return times_; }
  // Between steps. Reads a file of the system: 5 microseconds.
  MemoryUse memory() const;
  // Between steps: has the workers' time in steps profiled, as threads 0 ... threads() - 1 of `profile`, which must
  // outlive the trainer; null for no longer. Evaluations are not profiled.
  void set_profile(Profile* profile);
  // After weights and moments were loaded, or were not changed: go on from there.
  void resume(const TrainerState& state);
  // The same with all else as it is: as if `steps` had been done here, with an update each. `position` for a source
  // that needs it: what position() was then.
  void resume_after(uint64_t steps, const data::StreamPosition& position = {});
  // Where in the text the next step begins, for such a source.
  const data::StreamPosition& position() const { return position_; }

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
  std::unique_ptr<data::Prefetcher> prefetcher_;  // made by the first step
  std::deque<Workspace> work_;                    // one a team
  std::vector<double> losses_;                    // one a sequence of the step
  uint64_t steps_done_ = 0, updates_done_ = 0, left_out_ = 0;
  data::StreamPosition position_;
  LossTrend trend_;
  TrainerState before_;
  double loss_ = 0, spike_z_ = 0;  // of the step at hand
  Trouble trouble_ = Trouble::kNone;
  uint32_t turns_done_ = 0;
  UpdateReport update_;
  Health health_;
  bool measures_ = false;  // this step; set before its first task is submitted
  const HealthReport* health_report_ = nullptr;
  BufferPool pool_;                      // for evaluations
  std::optional<LossTasks> evaluation_;  // while there is one
  double rate_ = 0;
  WorkerTimes times_;
  Profile* profile_ = nullptr;

  alignas(kCacheLine) std::atomic<size_t> remaining_{0};   // tasks of the phase at hand
  alignas(kCacheLine) std::atomic<size_t> next_piece_{0};  // of the phase's segments
  size_t pieces_ = 0;                                      // set before the phase's tasks are submitted
  Signal finished_;                                        // steps, or failures
  std::unique_ptr<Workers> workers_;                       // last: its threads use all of the above
};

}  // namespace quern::train
