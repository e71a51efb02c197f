#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/process_memory.h"
#include "core/thread_profile.h"
#include "dist/tags.h"
#include "nn/regions.h"
#include "train/optimizer_settings.h"

namespace quern::train {
namespace {

const Region kStep("step"), kBatchWait("waiting for batches");

// Error unless the data has every column that the model reads.
void check_columns(const nn::Model& model, const data::BatchSource& batches) {
  const std::vector<ColumnSpec> found = batches.columns();
  for (const ColumnSpec& wanted : model.columns()) {
    if (std::find(found.begin(), found.end(), wanted) != found.end()) continue;
    std::string names;
    for (const ColumnSpec& column : found) names += fmt::format(" {} ({} per sequence)", column.name, column.width);
    throw Error("[train] the model reads column {} with {} values per sequence; the data has{}", wanted.name,
                wanted.width, names.empty() ? " none" : names);
  }
}

// Measures a step from its construction to stop().
class StepTimer {
 public:
  explicit StepTimer(Workers& workers) : workers_(workers) {
    workers_.count_from_now();
    before_ = workers_.waits();
  }

  void stop(StepReport& report) {
    report.seconds = seconds_now() - start_;
    workers_.count_until_now();
    report.waits = workers_.waits() - before_;
    report.cpu_seconds = cpu_seconds() - cpu_start_;
  }

 private:
  Workers& workers_;
  double start_ = seconds_now(), cpu_start_ = cpu_seconds();
  WaitTimes before_;
};

}  // namespace

Trainer::Trainer(const RunConfig& config, const Plan& plan, nn::Model& model, const data::BatchSource& batches,
                 RunState& state, TrainerOptions options)
    : config_(config),
      options_(std::move(options)),
      model_(model),
      batches_(batches),
      state_(state),
      schedule_(schedule_of(config)),
      optimizer_(make_optimizer(model.parameters(), optimizer_options(config), plan.threads)),
      plan_(plan),
      parts_(plan.cut.parts()),
      gradient_(model.parameters(), options_.teams != 0 ? options_.teams : plan.cut.teams,
                nn::LaneTree(plan.cut.share.lanes, plan.cut.share.own())),
      losses_(config.sequences_per_step() * model.loss_parts().size()),
      changes_(model.parameters().segments().size()) {
  check_columns(model, batches);
  if (options_.teams != 0) plan_.cut.teams = options_.teams;
  const size_t threads = plan_.threads, teams = plan_.cut.teams;
  for (size_t team = 0; team < teams; ++team) work_.emplace_back(model.activations(), plan_.workspace(team));
  if (options_.ranks != nullptr && options_.ranks->size() > 1) {
    exchange_ = std::make_unique<RankExchange>(*options_.ranks, plan_.cut, optimizer_->units(), gradient_,
                                               model_.weights().values(), RankExchange::Numbers{losses_, changes_});
    exchange_->on_failure([this] {
      gradient_.stop();
      if (prefetcher_ != nullptr) prefetcher_->stop();
      finished_.add(1);
    });
  }
  workers_ = std::make_unique<Workers>(
      WorkersOptions{.threads = threads, .teams = teams, .pin = config.train.pin},
      [this](const Task& task, size_t team, const Member& member) { run(task, team, member); },
      [this](const Task& task, size_t) { done(task); },
      [this] {
        gradient_.stop();
        if (exchange_ != nullptr) exchange_->stop();
        if (prefetcher_ != nullptr) prefetcher_->stop();
        finished_.add(1);
      });
}

// The thread of the exchange may not have returned from submitting the last task.
Trainer::~Trainer() {
  if (exchange_ != nullptr) exchange_->end();
}

const std::array<Trainer::Phase, 5> Trainer::kPhases = {{
    {&Trainer::feed_micro_batches, &Trainer::train_micro_batch},  // forward, loss, backward
    {&Trainer::begin_join, &Trainer::join_segments},              // the two gradients of the token table
    {&Trainer::begin_exchange, nullptr},                          // the gradients, losses and norms of all ranks
    {&Trainer::begin_update, &Trainer::update_units},             // clip, optimizer, weights of other ranks, repack
    {&Trainer::begin_share, nullptr},                             // all of this rank's weights are sent
}};

// The failure of a rank ends all of them: the others would wait for it.
void Trainer::rethrow() try {
  if (exchange_ != nullptr) exchange_->rethrow();
  workers_->rethrow();
} catch (...) {
  if (exchange_ != nullptr) options_.ranks->abort();
  throw;
}

StepReport Trainer::step() {
  rethrow();
  before_ = state_;
  prepare_step();
  StepTimer timer(*workers_);
  const Timed timed(kStep);
  const uint32_t finished = finished_.value();
  begin_from(0);
  finished_.await_change(finished);
  rethrow();
  advance_state();
  StepReport result = report();
  timer.stop(result);
  times_.total += result.seconds * static_cast<double>(result.threads);
  times_.waits = times_.waits + result.waits;
  return result;
}

void Trainer::train_micro_batch(const Task& task, size_t team, const Member& member) {
  const data::Batch& batch = *task.batch;
  const uint32_t index = task.index;
  const StepPart& part = parts_[index];
  nn::Workspace& work = work_[team];
  set_profile_place({.step = batch.step + 1, .micro_batch = index});
  model_.forward_backward({.columns = ColumnRefs(batch.columns),
                           .sequences = batch.sequences,
                           .T = config_.model.context,
                           .seed = config_.train.seed,
                           .step = batch.step,
                           .first_sequence = batch.first,
                           .turn = {.number = turns_done_ + index,
                                    .first = part.first,
                                    .last = part.last,
                                    .lane = static_cast<uint32_t>(part.lane)}},
                          {.scale = scale_of(batch.counted_targets), .gradient = gradient_}, work, member);
  if (!member.leads()) return;
  for (size_t s = 0; s < batch.sequences; ++s) {
    const size_t parts = model_.loss_parts().size();
    model_.losses_of_sequence(work, s, config_.model.context,
                              std::span(losses_).subspan((batch.first + s) * parts, parts));
  }
}

void Trainer::join_segments(const Task&, size_t, const Member&) {
  for (size_t i; (i = next_piece()) < pieces_;) gradient_.join(i);
}

void Trainer::update_units(const Task&, size_t team, const Member& member) {
  const size_t thread = first_thread_of(team, plan_.cut.teams, plan_.threads) + member.index;
  const size_t own = exchange_ == nullptr ? pieces_ : exchange_->own_units().size();
  for (size_t i; (i = next_piece()) < pieces_;) {
    if (i < own) {
      update(exchange_ == nullptr ? i : exchange_->own_units()[i], thread);
    } else {
      await_unit(member);
    }
  }
}

// Of another rank.
void Trainer::await_unit(const Member& member) {
  std::optional<uint32_t> unit;
  {
    const Timed timed(kRankWait);
    const double start = seconds_now();
    unit = exchange_->next_arrived();
    member.waits->queue.add(seconds_now() - start);
  }
  if (unit) repack(*unit);
}

void Trainer::update(size_t index, size_t thread) {
  const std::span<float> weights = model_.weights().values();
  {
    const UnitWork work = optimizer_->work(index);
    const Timed timed(*work.region, work.amount);
    if (current_.measured) {
      optimizer_->update_and_measure(index, thread, weights, gradient_.values(), changes_);
    } else {
      optimizer_->update(index, thread, weights, gradient_.values());
    }
  }
  if (exchange_ != nullptr) exchange_->give_unit(index);
  repack(index);
}

void Trainer::repack(size_t index) {
  const UpdateUnit& unit = optimizer_->units()[index];
  for (size_t i = 0; i < unit.segments; ++i) model_.weights().repack(unit.first_segment + i);
}

// Begins the first phase from this one that has something to do, or ends the step.
void Trainer::begin_from(size_t phase) {
  while (phase < kPhases.size() && !(this->*kPhases[phase].begin)()) ++phase;
  if (phase == kPhases.size()) finished_.add(1);
}

// Called by every member of a team.
void Trainer::run(const Task& task, size_t team, const Member& member) {
  if (options_.before_task) options_.before_task(task, member);
  if (task.kind == TaskKind::kLoss) return evaluation_->run(task.index, team, work_[team], member);
  set_profile_place({.step = static_cast<uint32_t>(state_.step + 1)});
  (this->*kPhases[static_cast<size_t>(task.kind)].work)(task, team, member);
}

// Called by the leader of the team that did the task.
void Trainer::done(const Task& task) {
  if (task.batch != nullptr && prefetcher_ != nullptr) prefetcher_->give_back(task.batch);
  // Acquires the writes that other teams released here and passes them on: the last team starts the next phase.
  if (remaining_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (task.kind == TaskKind::kLoss) return finished_.add(1);
  begin_after(task.kind);
}

void Trainer::prepare_batches() {
  const data::StreamPosition position = state_.stream.value_or(data::StreamPosition{});
  const bool broadcast = exchange_ != nullptr && config_.data.broadcast;
  if (broadcast && broadcast_ == nullptr) {
    broadcast_ = std::make_unique<BatchBroadcast>(*options_.ranks, plan_.cut, batches_,
                                                  BatchBroadcast::Options{.context = config_.model.context,
                                                                          .parts = parts_,
                                                                          .first_step = state_.next_data_step(),
                                                                          .position = position,
                                                                          .sources = options_.sources});
  }
  if (prefetcher_ == nullptr && (!broadcast || options_.ranks->rank() == 0)) {
    std::vector<Range> micro_batches;
    for (const StepPart& part : parts_) micro_batches.push_back(part.sequences);
    prefetcher_ = std::make_unique<data::Prefetcher>(
        batches_, data::PrefetchOptions{.targets_per_sequence = static_cast<uint32_t>(model_.targets_per_sequence()),
                                        .sequences_per_step = static_cast<uint32_t>(config_.sequences_per_step()),
                                        .batches = std::move(micro_batches),
                                        .first_step = state_.next_data_step(),
                                        .position = position});
  }
}

void Trainer::prepare_step() {
  prepare_batches();
  if (broadcast_ != nullptr) broadcast_->next_step();
  const uint64_t interval = config_.diagnostics.health_interval, step = state_.step + 1;
  current_ = {.rate = schedule_.at(step), .measured = interval > 0 && step % interval == 0};
  gradient_.measure(current_.measured);
  if (exchange_ != nullptr) exchange_->begin(current_.measured);
  set_profile_place({.step = static_cast<uint32_t>(step)});
}

bool Trainer::feed_micro_batches() {
  remaining_.store(plan_.cut.micro_batches, std::memory_order_relaxed);  // made visible by the queue
  for (uint32_t i = 0; i < plan_.cut.micro_batches; ++i) {
    data::Batch* batch = next_batch(i);
    if (batch == nullptr) break;  // a worker failed
    if (state_.stream) state_.stream = batch->after;
    current_.counted_targets = batch->counted_targets;
    workers_->submit({.kind = TaskKind::kTrain, .index = i, .batch = batch});
  }
  return true;
}

data::Batch* Trainer::next_batch(size_t index) {
  if (prefetcher_ == nullptr) return broadcast_->batch(index);
  const Timed timed(kBatchWait);
  const double start = seconds_now();
  data::Batch* batch = prefetcher_->next();
  current_.data_wait += seconds_now() - start;
  return batch;
}

bool Trainer::begin_join() {
  constexpr size_t kFew = 4;  // not worth waking other threads for
  if (gradient_.joins() > kFew) return submit_to_every_team(TaskKind::kJoin, gradient_.joins());
  gradient_.join_all();
  return false;
}

bool Trainer::begin_exchange() {
  if (exchange_ == nullptr) return false;
  exchange_->finish_gradient([this] { begin_after(TaskKind::kExchange); });
  return true;
}

bool Trainer::begin_share() {
  if (exchange_ == nullptr || !updates()) return false;
  exchange_->finish_weights([this] { begin_after(TaskKind::kShare); });
  return true;
}

bool Trainer::begin_update() {
  current_.update = optimizer_->begin(gradient_.squared_norm(), current_.rate, state_.updates + 1);
  sum_losses();
  current_.spike_z = std::isfinite(current_.loss) ? state_.losses.z(current_.loss) : 0;
  current_.trouble = judge();
  if (!updates()) return false;
  if (exchange_ != nullptr) exchange_->begin_weights();
  return submit_to_every_team(TaskKind::kUpdate, optimizer_->units().size());
}

// In the order of the sequences.
void Trainer::sum_losses() {
  const double targets = static_cast<double>(std::max<uint64_t>(1, current_.counted_targets));
  const size_t parts = model_.loss_parts().size();
  current_.loss = 0;
  for (size_t part = 0; part < parts; ++part) {
    double sum = 0;
    for (size_t i = part; i < losses_.size(); i += parts) sum += losses_[i];
    current_.loss_parts[part] = sum / targets;
    current_.loss += current_.loss_parts[part];
  }
}

Trouble Trainer::judge() const {
  if (!std::isfinite(current_.loss)) return Trouble::kLoss;
  if (!current_.update.finite) return Trouble::kGradient;
  const double max = config_.diagnostics.spike_z;
  return max > 0 && current_.spike_z > max ? Trouble::kSpike : Trouble::kNone;
}

bool Trainer::submit_to_every_team(TaskKind kind, size_t pieces) {
  pieces_ = pieces;
  next_piece_.store(0, std::memory_order_relaxed);
  const size_t tasks = workers_->teams();
  remaining_.store(tasks, std::memory_order_relaxed);  // all three made visible by the queue
  for (size_t i = 0; i < tasks; ++i) workers_->submit({.kind = kind, .index = static_cast<uint32_t>(i)});
  return true;
}

void Trainer::advance_state() {
  turns_done_ += static_cast<uint32_t>(plan_.cut.micro_batches);
  if (updates()) ++state_.updates;
  if (current_.trouble == Trouble::kNone) state_.losses.add(current_.loss);
  state_.loss = current_.loss;
  ++state_.step;
  state_.count_data(config_.sequences_per_step(), config_.model.context);
}

StepReport Trainer::report() const {
  return {.step = state_.step,
          .loss = current_.loss,
          .loss_parts = current_.loss_parts,
          .rate = current_.rate,
          .gradient_norm = current_.update.gradient_norm,
          .finite = current_.update.finite,
          .trouble = current_.trouble,
          .spike_z = current_.spike_z,
          .tokens = config_.sequences_per_step() * config_.model.context,
          .targets = current_.counted_targets,
          .threads = workers_->threads(),
          .data_wait = current_.data_wait};
}

double Trainer::evaluate(const data::EvaluationWindows& windows) {
  rethrow();
  workers_->set_profile(nullptr);
  const LaneShare& share = plan_.cut.share;
  const auto own = [&](size_t rank) {
    return Range{rank * windows.windows() / share.ranks, (rank + 1) * windows.windows() / share.ranks};
  };
  evaluation_.emplace(model_, windows, own(share.rank), plan_.cut.micro_batch_size, workers_->teams(), nullptr, pool_);
  const uint32_t finished = finished_.value();
  const auto tasks = static_cast<uint32_t>(evaluation_->count());
  remaining_.store(tasks, std::memory_order_relaxed);  // made visible by the queue
  for (uint32_t i = 0; i < tasks; ++i) workers_->submit({.kind = TaskKind::kLoss, .index = i});
  if (tasks > 0) finished_.await_change(finished);
  rethrow();
  if (exchange_ != nullptr) {
    dist::all_gather(*options_.ranks, dist::kEvaluationTag, std::as_writable_bytes(evaluation_->losses()),
                     [&](size_t rank) {
                       return Range{own(rank).begin * sizeof(double), own(rank).end * sizeof(double)};
                     });
  }
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
  for (const nn::Workspace& work : work_) arena += work.planned_bytes();
  return {.weights = plan.weights + plan.packed,
          .gradient = plan.gradient,
          .moments = plan.moments,
          .batches = plan.batches,
          .arena = arena + plan.update,
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
  broadcast_.reset();
  model_.weights().repack();
}

StepContext Trainer::context() {
  return {.config = config_,
          .plan = plan_,
          .model = model_,
          .batches = batches_,
          .before = before_,
          .losses = losses_,
          .measured = current_.measured,
          .changes = current_.measured && updates() ? std::span<const Change>(changes_) : std::span<const Change>(),
          .gradient = gradient_,
          .work = work_[0],
          .turns = turns_done_};
}

}  // namespace quern::train
