#include "run/training_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/process_memory.h"
#include "diagnose/incident.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

OpenOptions open_options(const RunConfig& config, Observer& observer, const std::atomic<bool>& stop) {
  const auto progress = [&observer, &stop](std::string_view what, uint64_t done, uint64_t total) {
    observer.on_preparing(what, done, total);
    if (stop.load(std::memory_order_relaxed)) throw StoppedEarly{};
  };
  return {.progress = progress,
          .validation_tokens = validation_tokens(config),
          .warn = [&observer](const std::string& text) { observer.on_warning(text); },
          .note = [&observer](const std::string& text) { observer.on_note(text); }};
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

}  // namespace

Run::Run(const RunConfig& config, const fs::path& folder, const fs::path& tokenizer_file, Observer& observer,
         const std::atomic<bool>& stop)
    : config_(config),
      folder_(folder),
      observer_(observer),
      stop_(stop),
      warn_([&observer](const std::string& text) { observer.on_warning(text); }),
      dataset_(open_dataset(config, tokenizer_file, open_options(config, observer, stop))),
      plan_(make_plan(config, dataset_.vocabulary, resident_bytes() + reader_bytes(config, dataset_))),
      batches_(training_batches(config, dataset_)),
      model_(nn::make_language_model(model_config(config, dataset_.vocabulary), plan_.packed)),
      state_(initial_state()),
      trainer_(config, plan_, *model_, *batches_, state_),
      checkpoints_(config_, folder, *model_, trainer_.optimizer()),
      validation_(config_, dataset_),
      health_(model_->parameters()) {}

// Writes the config last: it makes the directory a run.
void Run::write_files() const {
  remove_leftovers(folder_);
  if (dataset_.tokenizer != nullptr) write_file(folder_ / kTokenizerFile, dataset_.tokenizer->to_json());
  write_file(folder_ / kConfigFile, to_toml(config_));
}

bool Run::load() {
  remove_leftovers(folder_);
  const std::optional<RunState> found = checkpoints_.load_newest(warn_);
  if (!found) return false;
  check_same_run(*found);
  if (found->stream) {
    if (const std::string text = resume_text(dataset_, *found->stream); !text.empty()) observer_.on_note(text);
  }
  restore(*found);
  return true;
}

RunResult Run::train() {
  observer_.on_start(start_report());
  double loss = 0;
  while (state_.step < config_.train.steps && !stop_.load(std::memory_order_relaxed)) {
    StepReport report = trainer_.step();
    loss = report.loss;
    if (config_.is_due(config_.log.interval, state_.step)) report.memory = trainer_.memory();
    const std::exception_ptr failure = failure_of([&] { report_health(); });
    if (report.trouble != Trouble::kNone) {
      if (failure) std::rethrow_exception(failure);  // not saved: the policy may undo this step
      if (!handle_incident(report)) continue;
    }
    finish_step(report, failure);
  }
  end();
  return {.step = state_.step,
          .finished = state_.step >= config_.train.steps,
          .loss = loss,
          .validation_loss = state_.validation_loss};
}

RunStart Run::start_report() {
  return {.first_step = state_.step + 1,
          .steps = config_.train.steps,
          .incidents = state_.incidents,
          .parameters = model_->parameters().count(),
          .train_tokens = dataset_.train_tokens,
          .validation_tokens = dataset_.validation_tokens(),
          .estimated = dataset_.is_streaming(),
          .vocabulary = dataset_.vocabulary,
          .flops_per_token = model_->activations().training_flops(config_.model.context),
          .floor = dataset_.floor,
          .plan = &plan_,
          .set_profile = [this](Profile* profile) { trainer_.set_profile(profile); }};
}

// If an observer fails, for example because metrics.jsonl cannot be written, the run is saved before it ends. If
// validation fails, for example on damaged data, it is not saved: every checkpoint contains its validation loss.
void Run::finish_step(const StepReport& report, std::exception_ptr failure) {
  const auto is_due = [&](uint64_t interval) { return config_.is_due(interval, state_.step); };
  if (!failure) {
    failure = failure_of([&] {
      observer_.on_step(report);
      if (config_.log.histogram_interval > 0 && is_due(config_.log.histogram_interval)) show_weights();
    });
  }
  validation_.measure(trainer_, state_);
  if (!failure) {
    failure = failure_of([&] {
      if (state_.validation_loss) observer_.on_validation(state_.step, *state_.validation_loss);
      if (is_due(config_.checkpoint.interval)) save_and_report();
      observer_.on_step_end(state_.step);
    });
  }
  if (failure) end_after(failure);
}

// Saving may fail as well, for example on a full disk; the first failure is the one to report.
void Run::end_after(const std::exception_ptr& failure) {
  if (!checkpoints_.is_saved(state_.step)) static_cast<void>(failure_of([&] { save(); }));
  std::rethrow_exception(failure);
}

void Run::end() {
  if (!checkpoints_.is_saved(state_.step)) save_and_report();
  observer_.on_end({.planned_bytes = plan_.memory.total(), .peak_bytes = peak_resident_bytes()});
}

fs::path Run::save() {
  return checkpoints_.save(state_, dataset_.tokenizer ? dataset_.tokenizer->end_of_text() : std::nullopt);
}

void Run::report_health() {
  const HealthReport* report = health_.report(trainer_.context());
  if (report == nullptr) return;
  observer_.on_health(*report);
  for (const std::string& warning : health_warnings_.of(*report)) observer_.on_warning(warning);
}

void Run::show_weights() const {
  std::vector<NamedValues> tensors;
  for (const checkpoint::TensorRef& tensor : checkpoints_.tensors().weights) {
    tensors.push_back({tensor.name, tensor.values});
  }
  observer_.on_weights(state_.step, tensors);
}

RunState Run::initial_state() const {
  return {.stream = dataset_.has_position() ? std::optional(data::StreamPosition{}) : std::nullopt,
          .seed = config_.train.seed,
          .precision = std::string(precision_name(config_.train.precision)),
          .data = dataset_.fingerprint};
}

void Run::restore(const RunState& saved) {
  state_ = saved;
  state_.loss_scale = 1;  // older versions scaled fp16 gradients
  trainer_.resume();
}

void Run::check_same_run(const RunState& state) const {
  const auto check = [&](std::string_view setting, const auto& expected, const auto& found) {
    if (expected == found) return;
    throw Error("[run] {}: {}: expected {}, as in its checkpoint, found {}", (folder_ / kConfigFile).string(), setting,
                expected, found);
  };
  check("train.seed", state.seed, config_.train.seed);
  check("train.precision", state.precision, precision_name(config_.train.precision));
  const auto name = [](bool stream) -> std::string_view { return stream ? "a stream" : "no stream"; };
  check("data.sampling", name(state.stream.has_value()), name(dataset_.has_position()));
  check_same_data(config_, dataset_, state.data);
}

// Saves the failed step and applies the policy. Returns whether the step counts; throws Error to end the run.
bool Run::handle_incident(const StepReport& step) {
  const RunState before = trainer_.context().before;
  const bool too_many = state_.incidents >= config_.diagnostics.incident_limit;
  const Policy action = too_many ? Policy::kStop : config_.diagnostics.policy;
  IncidentReport report{.step = step.step, .number = before.incidents + 1, .trouble = step.trouble, .action = action};
  record_incident(step, report);
  if (action == Policy::kStop) {
    restore(before);
  } else {
    ++state_.incidents;
    if (action == Policy::kRollback) roll_back();
  }
  report.resumed_after = state_.step;
  observer_.on_incident(report);
  if (action != Policy::kStop) return action == Policy::kSkip;
  end();
  throw Error(
      "[run] {}; {}the run stopped before this step's update and can be resumed (diagnostics.policy); saved in {}",
      report.text, too_many ? fmt::format("{} incidents have reached the limit; ", state_.incidents) : "",
      report.folder.empty() ? "no folder, see the warning" : report.folder.string());
}

// Fills `report` with details of the step. Weights and moments must still be those before the step.
void Run::record_incident(const StepReport& step, IncidentReport& report) {
  const StepTokens tokens = read_step(trainer_.context(), trainer_.context().before);
  const Incident incident = examine_incident(trainer_.context(), step, tokens);
  report.text = describe(incident, config_.sequences_per_step(), plan_.cut.micro_batch_size);
  try {
    report.folder = save_incident(
        folder_ / kIncidentFolder, incident,
        {.config = config_, .model = model_->config(), .tensors = checkpoints_.tensors(), .tokens = tokens});
  } catch (const Error& error) {
    warn_(fmt::format("the incident of step {} could not be saved: {}", step.step, error.what()));
  }
}

// Returns to the last checkpoint, or to the beginning. Since runs are deterministic, the same data would cause the same
// incident, so training continues with the data after it.
void Run::roll_back() {
  const RunState after = state_;
  std::optional<RunState> target = checkpoints_.load_newest_regular(warn_);
  if (!target) {
    target = initial_state();
    checkpoints_.forget();
    initialise();
    trainer_.optimizer().reset();
  }
  target->incidents = after.incidents;
  target->skipped_steps = after.step + after.skipped_steps - target->step;
  target->count_data(config_.sequences_per_step(), config_.model.context);
  target->stream = after.stream;
  restore(*target);
}

}  // namespace quern::train
