#include "run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/process_memory.h"
#include "core/text.h"
#include "dataset/dataset.h"
#include "diagnose/incident.h"
#include "evaluate/load.h"
#include "kernels/target.h"
#include "quern/profile.h"
#include "run/run_lock.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

const Region kValidation("validation"), kCheckpoint("checkpoint");

// The maximum number of windows of a validation.
uint64_t validation_windows(const RunConfig& config) {
  return config.train.validation_batches == 0 ? UINT64_MAX : config.train.validation_batches * config.train.batch;
}

// 0 to 10^9 batches of 1 to 10^6 sequences do not overflow, but multiplied by the context they could.
uint64_t validation_tokens(const RunConfig& config) {
  const uint64_t windows = validation_windows(config);
  return windows > (UINT64_MAX - 1) / config.model.context ? UINT64_MAX : windows * config.model.context + 1;
}

// Thrown if the run is asked to stop during data preparation, when there is nothing to save yet.
struct StoppedEarly {};

OpenOptions open_options(const RunConfig& config, Observer& observer, const std::atomic<bool>& stop) {
  const auto progress = [&observer, &stop](std::string_view what, uint64_t done, uint64_t total) {
    observer.on_preparing(what, done, total);
    if (stop.load(std::memory_order_relaxed)) throw StoppedEarly{};
  };
  return {.progress = progress,
          .validation_tokens = validation_tokens(config),
          .warn = [&observer](const std::string& text) { observer.on_warning(text); }};
}

// The Error that f throws, or null.
template <typename F>
std::exception_ptr failure_of(F f) {
  try {
    f();
  } catch (const Error&) {
    return std::current_exception();
  }
  return nullptr;
}

// The state of a run in memory.
class Session {
 public:
  // `tokenizer_file` is passed to open_dataset(): the run's own for a resumed run, empty for a new one.
  Session(const RunConfig& config, const fs::path& folder, const fs::path& tokenizer_file, Observer& observer,
          const std::atomic<bool>& stop)
      : config_(config),
        folder_(folder),
        dataset_(open_dataset(config, tokenizer_file, open_options(config, observer, stop))),
        plan_(make_plan(config, dataset_.vocabulary, resident_bytes())),
        batches_(training_batches(config, dataset_)),
        model_(model_config(config, dataset_.vocabulary), plan_.packed),
        state_(initial_state()),
        trainer_(config, plan_, model_, *batches_, state_),
        health_(model_.layout()),
        weights_(checkpoint::tensor_refs(model_.layout(), model_.weights().values())),
        m_(checkpoint::tensor_refs(model_.layout(), trainer_.optimizer().m())),
        v_(checkpoint::tensor_refs(model_.layout(), trainer_.optimizer().v())) {
    if (config.data.validation_fraction > 0) {
      validation_.emplace(dataset_.split.validation, static_cast<uint32_t>(config.model.context),
                          validation_windows(config));
    }
  }

  // Writes the config last: it makes the directory a run.
  void write_files() {
    remove_leftovers(folder_);
    if (dataset_.tokenizer != nullptr) write_file(folder_ / kTokenizerFile, dataset_.tokenizer->to_json());
    write_file(folder_ / kConfigFile, to_toml(config_));
  }

  void initialise() { model_.initialise(config_.train.seed); }

  // Loads the newest complete checkpoint; false if there is none.
  bool load(Observer& observer) {
    remove_leftovers(folder_);
    const auto found = newest_checkpoint(
        folder_, [&](const std::string& text) { observer.on_warning(text); }, checkpoint::Parts::kAll);
    if (!found) return false;
    found->load({weights_, m_, v_});
    check_same_run(found->state());
    restore(found->state());
    saved_step_ = state_.step;
    trainer_.resume();
    return true;
  }

  RunResult train(Observer& observer, const std::atomic<bool>& stop) {
    observer.on_start({.first_step = state_.step + 1,
                       .steps = config_.train.steps,
                       .incidents = state_.incidents,
                       .parameters = model_.layout().count(),
                       .train_tokens = dataset_.train_tokens,
                       .validation_tokens = dataset_.split.validation.size(),
                       .estimated = dataset_.text.has_value(),
                       .vocabulary = dataset_.vocabulary,
                       .flops_per_token = training_flops_per_token(model_.config(), config_.model.context),
                       .floor = dataset_.floor,
                       .plan = &plan_,
                       .set_profile = [this](Profile* profile) { trainer_.set_profile(profile); }});
    double loss = 0;
    while (state_.step < config_.train.steps && !stop.load(std::memory_order_relaxed)) {
      StepReport report = trainer_.step();
      loss = report.loss;
      if (due(config_.log.interval)) report.memory = trainer_.memory();
      const std::exception_ptr failure = failure_of([&] { tell_health(observer); });
      if (report.trouble != Trouble::kNone) {
        if (failure) std::rethrow_exception(failure);  // not saved: the policy may undo this step
        if (!handle_incident(report, observer)) continue;
      }
      finish_step(report, observer, failure);
    }
    end(observer);
    return {.step = state_.step,
            .finished = state_.step >= config_.train.steps,
            .loss = loss,
            .validation_loss = state_.validation_loss};
  }

 private:
  // The state before the first step.
  RunState initial_state() const {
    return {.stream = dataset_.text ? std::optional(data::StreamPosition{}) : std::nullopt,
            .seed = config_.train.seed,
            .precision = std::string(precision_name(config_.train.precision)),
            .data = dataset_.fingerprint};
  }

  void restore(const RunState& saved) {
    state_ = saved;
    state_.loss_scale = 1;  // older versions scaled fp16 gradients
  }

  // If an observer fails, for example because metrics.jsonl cannot be written, the run is saved before it ends. If
  // validation fails, for example on damaged data, it is not saved: every checkpoint contains its validation loss.
  void finish_step(const StepReport& report, Observer& observer, std::exception_ptr failure) {
    const uint64_t step = state_.step;
    if (!failure) {
      failure = failure_of([&] {
        observer.on_step(report);
        if (config_.log.histogram_interval > 0 && due(config_.log.histogram_interval)) show_weights(observer);
      });
    }
    state_.validation_loss = validate();
    if (!failure) {
      failure = failure_of([&] {
        if (state_.validation_loss) observer.on_validation(step, *state_.validation_loss);
        if (due(config_.checkpoint.interval)) save(observer);
        observer.on_step_end(step);
      });
    }
    if (failure) end_after(failure);
  }

  // Saving may fail as well, for example on a full disk; the first failure is the one to report.
  [[noreturn]] void end_after(const std::exception_ptr& failure) {
    Observer quiet;
    if (saved_step_ != state_.step) static_cast<void>(failure_of([&] { save(quiet); }));
    std::rethrow_exception(failure);
  }

  void end(Observer& observer) {
    if (saved_step_ != state_.step) save(observer);
    observer.on_end({.planned_bytes = plan_.memory.total(), .peak_bytes = peak_resident_bytes()});
  }

  // Saves the failed step and applies the policy. Returns whether the step counts; throws Error to end the run.
  bool handle_incident(const StepReport& step, Observer& observer) {
    const RunState before = trainer_.context().before;
    const bool too_many = state_.incidents >= config_.diagnostics.incident_limit;
    IncidentReport report{
        .step = step.step, .trouble = step.trouble, .action = too_many ? Policy::kStop : config_.diagnostics.policy};
    record_incident(step, report, observer);
    if (report.action != Policy::kStop) ++state_.incidents;
    if (report.action == Policy::kRollback) go_back(observer);
    if (report.action == Policy::kStop) {
      state_ = before;
      trainer_.resume();
    }
    report.goes_on_after = state_.step;
    report.number = state_.incidents + (report.action == Policy::kStop ? 1 : 0);
    observer.on_incident(report);
    if (report.action != Policy::kStop) return report.action == Policy::kSkip;
    end(observer);
    throw Error(
        "[run] {}; {}the run stopped before this step's update and can be resumed (diagnostics.policy); saved in {}",
        report.text, too_many ? fmt::format("{} incidents have reached the limit; ", state_.incidents) : "",
        report.folder.empty() ? "no folder, see the warning" : report.folder.string());
  }

  // Fills `report` with details of the step. Weights and moments must still be those before the step.
  void record_incident(const StepReport& step, IncidentReport& report, Observer& observer) {
    const uint64_t sequences = config_.sequences_per_step();
    Incident incident{.step = step.step,
                      .trouble = step.trouble,
                      .loss = step.loss,
                      .gradient_norm = step.gradient_norm,
                      .spike_z = step.spike_z,
                      .gradient_hash = gradient_hash(model_.layout(), trainer_.context().gradient.values()),
                      .before = trainer_.context().before,
                      .target = kernels::current_target().name};
    const StepContext context = trainer_.context();
    const std::span<const double> losses = context.losses;
    incident.worst_sequence = highest(losses);
    incident.worst_loss = losses[incident.worst_sequence] / static_cast<double>(config_.model.context);
    const StepTokens tokens = read_step(context, incident.before);
    if (step.trouble != Trouble::kSpike) incident.findings = examine(context, tokens, incident.before);
    report.text = describe(incident, sequences, plan_.cut.at_once);
    try {
      report.folder =
          save_incident(folder_ / kIncidentFolder, incident,
                        {.config = config_, .model = model_.config(), .tensors = {weights_, m_, v_}, .tokens = tokens});
    } catch (const Error& error) {
      observer.on_warning(fmt::format("the incident of step {} could not be saved: {}", step.step, error.what()));
    }
  }

  bool is_regular(uint64_t step) const {
    return config_.checkpoint.interval > 0 && step % config_.checkpoint.interval == 0;
  }

  // The newest complete checkpoint at a regular interval, so that the rollback target does not depend on interruptions.
  std::optional<checkpoint::Checkpoint> last_regular(Observer& observer) const {
    const fs::path folder = folder_ / kCheckpointFolder;
    std::vector<uint64_t> steps = checkpoint::list_steps(folder);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (!is_regular(*step)) continue;
      try {
        return checkpoint::Checkpoint(folder / checkpoint::directory_name(*step));
      } catch (const Error& error) {
        observer.on_warning(fmt::format("skipped {}", error.what()));
      }
    }
    return std::nullopt;
  }

  // Rolls back to the last checkpoint, or to the beginning. Since runs are deterministic, the same data would cause the
  // same incident, so training continues with the data after it.
  void go_back(Observer& observer) {
    const RunState after = state_;
    const auto found = last_regular(observer);
    if (found) {
      found->load({weights_, m_, v_});
    } else {
      initialise();
      for (const std::span<float> moments : {trainer_.optimizer().m(), trainer_.optimizer().v()}) {
        std::fill(moments.begin(), moments.end(), 0.0f);
      }
    }
    restore(found ? found->state() : initial_state());
    saved_step_ = found ? std::optional(state_.step) : std::nullopt;
    state_.incidents = after.incidents;
    state_.skipped_steps = after.step + after.skipped_steps - state_.step;
    state_.data_position = after.data_position;
    state_.stream = after.stream;
    trainer_.resume();
  }

  // The sequence with the highest loss, where NaN is higher than any number.
  static size_t highest(std::span<const double> losses) {
    size_t at = 0;
    for (size_t i = 1; i < losses.size() && !std::isnan(losses[at]); ++i) {
      if (!(losses[i] <= losses[at])) at = i;
    }
    return at;
  }

  void tell_health(Observer& observer) {
    const HealthReport* report = health_.report(trainer_.context());
    if (report == nullptr) return;
    observer.on_health(*report);
    for (const std::string& warning : health_warnings_.of(*report)) observer.on_warning(warning);
  }

  void check_same_run(const RunState& state) const {
    if (state.seed != config_.train.seed) {
      throw Error("[run] {}: train.seed: expected {}, as in its checkpoint, found {}", (folder_ / kConfigFile).string(),
                  state.seed, config_.train.seed);
    }
    if (const std::string_view precision = precision_name(config_.train.precision); state.precision != precision) {
      throw Error("[run] {}: train.precision: expected {}, as in its checkpoint, found {}",
                  (folder_ / kConfigFile).string(), state.precision, precision);
    }
    if (state.stream.has_value() != dataset_.text.has_value()) {
      throw Error("[run] {}: data.sampling: expected {} stream, as in its checkpoint, found the opposite",
                  (folder_ / kConfigFile).string(), state.stream ? "a" : "no");
    }
    check_same_data(config_, dataset_, state.data);
  }

  // Whether something with this interval, which also happens after the last step, is due now.
  bool due(uint64_t interval) const {
    const uint64_t step = state_.step;
    return step == config_.train.steps || (interval > 0 && step % interval == 0);
  }

  void show_weights(Observer& observer) const {
    std::vector<NamedValues> tensors;
    for (const checkpoint::TensorRef& tensor : weights_) tensors.push_back({tensor.name, tensor.values});
    observer.on_weights(state_.step, tensors);
  }

  // The loss on held-out text, if due. It is also due with every checkpoint, so that each contains its loss. Does not
  // affect training.
  std::optional<double> validate() {
    const uint64_t interval = config_.train.validation_interval;
    const bool wanted = due(interval) || (interval > 0 && due(config_.checkpoint.interval));
    if (!validation_ || !wanted) return std::nullopt;
    const Timed timed(kValidation);
    const double loss = trainer_.evaluate(*validation_);
    // A loss that is not finite is not saved, so it must not count as the best in memory either.
    const bool best = !state_.best_validation_loss || loss < *state_.best_validation_loss;
    if (best && std::isfinite(loss)) {
      state_.best_validation_loss = loss;
      state_.best_step = state_.step;
    }
    return loss;
  }

  std::optional<int32_t> end_of_text() const {
    return dataset_.tokenizer == nullptr ? std::nullopt : dataset_.tokenizer->end_of_text();
  }

  void save(Observer& observer) {
    const Timed timed(kCheckpoint);
    const ModelConfig& model = model_.config();
    const fs::path path = checkpoint::save(folder_ / kCheckpointFolder, {weights_, m_, v_}, state_,
                                           {.layers = model.layers,
                                            .heads = model.heads,
                                            .width = model.width,
                                            .context = model.context,
                                            .vocabulary = model.vocabulary,
                                            .dropout = config_.model.dropout,
                                            .end_of_text = end_of_text()});
    // A checkpoint from an interruption must not displace the target of a rollback.
    if (config_.diagnostics.policy != Policy::kRollback || is_regular(state_.step)) {
      checkpoint::remove_old(folder_ / kCheckpointFolder, state_.step,
                             {.keep = config_.checkpoint.keep, .keep_best = config_.checkpoint.keep_best});
    }
    saved_step_ = state_.step;
    observer.on_checkpoint(state_.step, path);
  }

  RunConfig config_;
  fs::path folder_;
  Dataset dataset_;
  Plan plan_;
  std::unique_ptr<data::BatchSource> batches_;
  std::optional<data::ValidationBatches> validation_;
  Gpt model_;
  RunState state_;
  Trainer trainer_;
  Health health_;
  HealthWarnings health_warnings_;
  std::vector<checkpoint::TensorRef> weights_, m_, v_;
  std::optional<uint64_t> saved_step_;  // of the newest checkpoint
};

// Whether a start killed before it wrote the config can leave this file, apart from the lock.
bool is_left_by_start(const std::string& name) { return name == kTokenizerFile || is_temporary_name(name); }

// Error unless a run can be started in `folder` without touching unrelated files.
void check_free(const fs::path& folder) {
  expect_folder(folder);
  if (fs::exists(folder / kConfigFile)) {
    throw Error("[run] {}: holds a run already; resume it (--resume) or choose another folder", folder.string());
  }
  if (!checkpoint::list_steps(folder / kCheckpointFolder).empty()) {
    throw Error("[run] {}: expected an empty folder, found checkpoints without a {}; choose another folder",
                folder.string(), kConfigFile);
  }
  if (!fs::is_directory(folder)) return;
  const fs::path lock = folder / kLockFile;
  const bool locked = is_run_lock(lock), started = locked && fs::file_size(lock) > 0;  // an empty one proves nothing
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if ((locked && name == kLockFile) || (started && is_left_by_start(name))) continue;
    throw Error("[run] {}: expected a new or empty folder, found {} in it; choose another folder", folder.string(),
                in_quotes(name));
  }
}

// Error unless the directory has a checkpoint, or a config.toml with train.seed, as every started run writes. Otherwise
// an empty config.toml, or one of another program, would be taken for a run with default settings.
void check_started(const fs::path& folder) {
  if (!checkpoint::list_steps(folder / kCheckpointFolder).empty()) return;
  const fs::path config = folder / kConfigFile;
  if (sets_field(config, "train.seed")) return;
  throw Error(
      "[run] {}: expected a run with a checkpoint or with train.seed in its {}, found neither; start a new run "
      "with --config",
      folder.string(), kConfigFile);
}

}  // namespace

RunResult start_run(const RunConfig& config, const fs::path& folder, Observer& observer,
                    const std::atomic<bool>& stop) try {
  check_free(folder);
  validate(config);
  Session session(config, folder, {}, observer, stop);
  session.initialise();
  create_folders(folder);
  const RunLock lock(folder, observer);
  check_free(folder);  // another process may have started a run during data preparation
  session.write_files();
  return session.train(observer, stop);
} catch (const StoppedEarly&) {
  return {.prepared = false};
}

RunResult resume_run(const RunConfig& config, const fs::path& folder, Observer& observer,
                     const std::atomic<bool>& stop) try {
  validate(config);
  check_started(folder);
  const RunLock lock(folder, observer);
  Session session(config, folder, folder / kTokenizerFile, observer, stop);
  if (!session.load(observer)) session.initialise();
  return session.train(observer, stop);
} catch (const StoppedEarly&) {
  return {.prepared = false};
}

}  // namespace quern::train
