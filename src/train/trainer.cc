#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/process_memory.h"
#include "core/thread_profile.h"
#include "nn/regions.h"

namespace quern::train {
namespace {

const Region kAdamW("AdamW", Unit::kBytes), kStep("step"), kBatchWait("waiting for batches");
constexpr double kAdamWBytes =
    7 * sizeof(float);  // per weight: reads gradient, value and moments; writes value and moments

quern::Schedule schedule_of(const RunConfig& config) {
  const auto kind = [&] {
    switch (config.optimizer.schedule) {
      case train::Schedule::kCosine:
        return ScheduleKind::kCosine;
      case train::Schedule::kLinear:
        return ScheduleKind::kLinear;
      case train::Schedule::kConstant:
        return ScheduleKind::kConstant;
    }
    return ScheduleKind::kConstant;
  }();
  return {.kind = kind,
          .rate = config.optimizer.rate,
          .min_rate = config.optimizer.min_rate,
          .warmup = config.optimizer.warmup,
          .steps = config.train.steps};
}

OptimizerOptions optimizer_options(const RunConfig& config) {
  return {.beta1 = static_cast<float>(config.optimizer.beta1),
          .beta2 = static_cast<float>(config.optimizer.beta2),
          .epsilon = static_cast<float>(config.optimizer.epsilon),
          .weight_decay = static_cast<float>(config.optimizer.weight_decay),
          .clip = static_cast<float>(config.optimizer.clip)};
}

}  // namespace

Trainer::Trainer(const RunConfig& config, const Plan& plan, Gpt& model, const data::BatchSource& batches,
                 RunState& state, TrainerOptions options)
    : config_(config),
      options_(std::move(options)),
      model_(model),
      batches_(batches),
      schedule_(schedule_of(config)),
      optimizer_(model.layout(), optimizer_options(config)),
      plan_(plan),
      gradient_(model.layout(), options_.teams != 0 ? options_.teams : plan.cut.teams),
      losses_(config.sequences_per_step()),
      state_(state),
      changes_(model.layout().segments().size()) {
  if (options_.teams != 0) plan_.cut.teams = options_.teams;
  const size_t threads = plan_.threads, teams = plan_.cut.teams;
  for (size_t team = 0; team < teams; ++team) work_.emplace_back(model.config(), plan_.workspace(team));
  workers_ = std::make_unique<Workers>(
      WorkersOptions{.threads = threads, .teams = teams, .pin = config.train.pin},
      [this](const Task& task, size_t team, const Member& member) { run(task, team, member); },
      [this](const Task& task, size_t) { done(task); },
      [this] {
        gradient_.stop();
        if (prefetcher_ != nullptr) prefetcher_->stop();
        finished_.add(1);
      });
}

Trainer::~Trainer() = default;

StepReport Trainer::step() {
  workers_->rethrow();
  if (prefetcher_ == nullptr) {
    prefetcher_ = std::make_unique<data::Prefetcher>(
        batches_, data::PrefetchOptions{.context = static_cast<uint32_t>(config_.model.context),
                                        .sequences_per_step = static_cast<uint32_t>(config_.sequences_per_step()),
                                        .at_once = static_cast<uint32_t>(plan_.cut.at_once),
                                        .first_step = state_.next_data_step(),
                                        .position = state_.stream.value_or(data::StreamPosition{})});
  }
  before_ = state_;
  const double start = seconds_now(), cpu_start = cpu_seconds();
  workers_->count_from_now();
  const WaitTimes before = workers_->waits();
  const uint32_t finished = finished_.value();
  rate_ = schedule_.at(state_.step + 1);
  const uint64_t interval = config_.diagnostics.health_interval;
  measures_ = interval > 0 && (state_.step + 1) % interval == 0;
  gradient_.measure(measures_);
  set_profile_place({.step = static_cast<uint32_t>(state_.step + 1)});
  const Timed timed(kStep);
  const double data_wait = feed();
  finished_.await_change(finished);
  workers_->rethrow();
  const uint64_t tokens = config_.sequences_per_step() * config_.model.context;
  if (updates()) ++state_.updates;
  if (trouble_ == Trouble::kNone) state_.losses.add(loss_);
  turns_done_ += static_cast<uint32_t>(plan_.cut.micro_batches);
  ++state_.step;
  state_.tokens += tokens;
  state_.data_position += config_.sequences_per_step();
  const double seconds = seconds_now() - start;
  workers_->count_until_now();
  times_.total += seconds * static_cast<double>(workers_->threads());
  const WaitTimes after = workers_->waits();
  const WaitTimes waits{after.tickets - before.tickets, after.team - before.team, after.queue - before.queue};
  times_.waits.tickets += waits.tickets;
  times_.waits.team += waits.team;
  times_.waits.queue += waits.queue;

  return {.step = state_.step,
          .loss = loss_,
          .rate = rate_,
          .gradient_norm = update_.gradient_norm,
          .finite = update_.finite,
          .trouble = trouble_,
          .spike_z = spike_z_,
          .tokens = tokens,
          .seconds = seconds,
          .threads = workers_->threads(),
          .waits = waits,
          .data_wait = data_wait,
          .cpu_seconds = cpu_seconds() - cpu_start};
}

data::Batch* Trainer::next_batch(double& waited) {
  const Timed timed(kBatchWait);
  const double start = seconds_now();
  data::Batch* batch = prefetcher_->next();
  waited += seconds_now() - start;
  return batch;
}

// Returns the seconds spent waiting for batches.
double Trainer::feed() {
  double waited = 0;
  remaining_.store(plan_.cut.micro_batches, std::memory_order_relaxed);  // made visible by the queue
  for (uint32_t i = 0; i < plan_.cut.micro_batches; ++i) {
    data::Batch* batch = next_batch(waited);
    if (batch == nullptr) break;  // a worker failed
    if (state_.stream) state_.stream = batch->after;
    workers_->submit({.kind = TaskKind::kTrain, .index = i, .batch = batch});
  }
  return waited;
}

void Trainer::run(const Task& task, size_t team, const Member& member) {
  if (options_.before_task) options_.before_task(task, member);
  if (task.kind == TaskKind::kTrain) return train(*task.batch, task.index, team, member);
  if (task.kind == TaskKind::kLoss) return evaluation_->run(task.index, team, work_[team], member);
  set_profile_place({.step = static_cast<uint32_t>(state_.step + 1)});
  for (size_t i; (i = next_piece_.fetch_add(1, std::memory_order_relaxed)) < pieces_;) {
    if (task.kind == TaskKind::kJoin) {
      gradient_.join(i);
    } else {
      update(i);
    }
  }
}

void Trainer::update(size_t segment) {
  const std::span<float> weights = model_.weights().values();
  {
    const Timed timed(kAdamW, kAdamWBytes * static_cast<double>(model_.layout().segments()[segment].size));
    if (measures_) {
      changes_[segment] = optimizer_.update_and_measure(segment, weights, gradient_.values());
    } else {
      optimizer_.update(segment, weights, gradient_.values());
    }
  }
  model_.weights().repack(segment);
}

void Trainer::train(const data::Batch& batch, uint32_t index, size_t team, const Member& member) {
  const double tokens = static_cast<double>(config_.sequences_per_step() * config_.model.context);
  Workspace& work = work_[team];
  set_profile_place({.step = batch.step + 1, .micro_batch = index});
  model_.forward_backward(
      {.tokens = batch.inputs.data(),
       .targets = batch.targets.data(),
       .sequences = batch.sequences,
       .T = config_.model.context,
       .seed = config_.train.seed,
       .step = batch.step,
       .first_sequence = batch.first,
       .turn = {.number = turns_done_ + index, .first = index == 0, .last = index + 1 == plan_.cut.micro_batches}},
      static_cast<float>(1 / tokens), gradient_, work, member);
  if (!member.leads()) return;
  for (size_t s = 0; s < batch.sequences; ++s) {
    losses_[batch.first + s] = work.loss_of_sequence(s, config_.model.context);
  }
}

// Called by the leader of the team that did the task.
void Trainer::done(const Task& task) {
  if (task.batch != nullptr) prefetcher_->give_back(task.batch);
  // Acquires the writes that other teams released here and passes them on: the last team starts the next phase.
  if (remaining_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  switch (task.kind) {
    case TaskKind::kTrain:
      return begin_join();
    case TaskKind::kJoin:
      return begin_update();
    case TaskKind::kUpdate:
    case TaskKind::kLoss:
      return finished_.add(1);
  }
}

void Trainer::begin_join() {
  constexpr size_t kFew = 4;  // not worth waking other threads for
  if (gradient_.joins() > kFew) return submit_to_every_team(TaskKind::kJoin, gradient_.joins());
  gradient_.join_all();
  begin_update();
}

void Trainer::begin_update() {
  update_ = optimizer_.begin(gradient_.squared_norm(), rate_, state_.updates + 1);
  const double tokens = static_cast<double>(config_.sequences_per_step() * config_.model.context);
  loss_ = std::accumulate(losses_.begin(), losses_.end(), 0.0) / tokens;
  trouble_ = judge();
  if (!updates()) return finished_.add(1);
  submit_to_every_team(TaskKind::kUpdate, model_.layout().segments().size());
}

Trouble Trainer::judge() {
  spike_z_ = std::isfinite(loss_) ? state_.losses.z(loss_) : 0;
  if (!std::isfinite(loss_)) return Trouble::kLoss;
  if (!update_.finite) return Trouble::kGradient;
  const double max = config_.diagnostics.spike_z;
  return max > 0 && spike_z_ > max ? Trouble::kSpike : Trouble::kNone;
}

void Trainer::submit_to_every_team(TaskKind kind, size_t pieces) {
  pieces_ = pieces;
  next_piece_.store(0, std::memory_order_relaxed);
  const size_t tasks = workers_->teams();
  remaining_.store(tasks, std::memory_order_relaxed);  // all three made visible by the queue
  for (size_t i = 0; i < tasks; ++i) workers_->submit({.kind = kind, .index = static_cast<uint32_t>(i)});
}

double Trainer::evaluate(const data::ValidationBatches& windows) {
  workers_->rethrow();
  workers_->set_profile(nullptr);
  evaluation_.emplace(model_, windows, plan_.cut.at_once, workers_->teams(), nullptr, pool_);
  const uint32_t finished = finished_.value();
  const auto tasks = static_cast<uint32_t>(evaluation_->count());
  remaining_.store(tasks, std::memory_order_relaxed);  // made visible by the queue
  for (uint32_t i = 0; i < tasks; ++i) workers_->submit({.kind = TaskKind::kLoss, .index = i});
  finished_.await_change(finished);
  workers_->rethrow();
  const double loss = evaluation_->result().loss;
  evaluation_.reset();
  workers_->set_profile(profile_);
  return loss;
}

MemoryUse Trainer::memory() const {
  const MemoryPlan& plan = plan_.memory;
  const BufferPool::Statistics pool = pool_.statistics();
  const ProcessMemory process = process_memory();
  uint64_t arena = 0;
  for (const Workspace& work : work_) arena += work.planned_bytes();
  return {.weights = plan.weights + plan.packed,
          .gradient = plan.gradient,
          .moments = plan.moments,
          .batches = plan.batches,
          .arena = arena,
          .pool = pool.bytes_held + pool.bytes_rented,
          .planned = plan.total(),
          .resident = process.resident,
          .peak = process.peak};
}

void Trainer::set_profile(Profile* profile) {
  profile_ = profile;
  workers_->set_profile(profile);
}

void Trainer::resume() {
  prefetcher_.reset();
  model_.weights().repack();
}

StepContext Trainer::context() {
  return {.config = config_,
          .plan = plan_,
          .model = model_,
          .batches = batches_,
          .before = before_,
          .losses = losses_,
          .measured = measures_,
          .changes = measures_ && updates() ? std::span<const Change>(changes_) : std::span<const Change>(),
          .gradient = gradient_,
          .work = work_[0],
          .turns = turns_done_};
}

}  // namespace quern::train
