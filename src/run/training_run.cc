#include "run/training_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/data_sources.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/process_memory.h"
#include "core/quick_hash.h"
#include "dataset/chat_dataset.h"
#include "dataset/remote_dataset.h"
#include "diagnose/incident.h"
#include "evaluate/base_model.h"
#include "formats/model_files.h"
#include "run/source_run.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// The text of a resumed run is the one that it was started with: nothing new can be said about it.
// One of several ranks cannot stop before they have agreed on it.
OpenOptions open_options(const RunConfig& config, bool resumed, Observer& observer, const std::atomic<bool>& stop,
                         const RunRanks& ranks) {
  const auto progress = [&observer, &stop, several = ranks.several()](std::string_view what, uint64_t done,
                                                                      uint64_t total) {
    observer.on_preparing(what, done, total);
    if (!several && stop.load(std::memory_order_relaxed)) throw StoppedEarly{};
  };
  OpenOptions options{.progress = progress, .validation_tokens = validation_tokens(config), .resumed = resumed};
  if (resumed) return options;
  options.check_text = !config.init.from.empty() || config.data.tokenizer == TokenizerKind::kFile;
  options.warn = [&observer](const std::string& text) { observer.on_warning(text); };
  options.note = [&observer](const std::string& text) { observer.on_note(text); };
  return options;
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

// The data as it is given to `quern train`.
std::string data_arguments(const RunConfig& config) {
  if (config.data.sources.empty()) return fmt::format("{}", fmt::join(config.data.paths, " "));
  return fmt::format("--set 'data.sources=[\"{}\"]'", fmt::join(config.data.sources, "\", \""));
}

// Error unless sources that moved have the same weights.
void check_same_weights(const RunConfig& own, const RunConfig& config) {
  const std::vector<WeightedSource> before = weighted_sources(own), now = weighted_sources(config);
  const auto same_weight = [](const WeightedSource& a, const WeightedSource& b) { return a.weight == b.weight; };
  if (std::ranges::equal(before, now, same_weight)) return;
  throw Error(
      "[config] data.sources: expected the sources of the run with their weights, in other places, found {}; to train "
      "on another mixture, start a new run with --from",
      config.data.sources.empty() ? "data.paths" : in_quotes(config.data.sources.front()));
}

}  // namespace

Run::Run(const RunConfig& config, const fs::path& folder, const fs::path& tokenizer_file, Observer& observer,
         const std::atomic<bool>& stop, const RunRanks& ranks)
    : config_(config),
      folder_(folder),
      observer_(observer),
      stop_(stop),
      ranks_(ranks),
      warn_([&observer](const std::string& text) { observer.on_warning(text); }),
      dataset_(has_text() ? open_dataset(
                                config, tokenizer_file,
                                open_options(config, tokenizer_file == folder / kTokenizerFile, observer, stop, ranks))
                          : Dataset()) {
  complete_steps(config_, dataset_);
}

void Run::join_ranks() {
  check_ranks();
  if (ranks_.several() && config_.data.broadcast) share_dataset();
  ranks_.check_same("data",
                    fmt::format("{} training tokens, hash {:016x}", dataset_.train_tokens, dataset_.fingerprint.hash));
  program_bytes_ = resident_bytes() + reader_bytes(config_, dataset_);
  state_ = initial_state();
}

void Run::share_dataset() {
  std::string description;
  ranks_.agree([&] {
    if (has_text()) description = describe_dataset(dataset_, validation_tokens(config_));
  });
  const std::string shared = ranks_.from_first(description);
  ranks_.agree([&] {
    if (!has_text()) dataset_ = remote_dataset(shared);
  });
}

void Run::check_ranks() const {
  if (!ranks_.several()) return;
  RunConfig comparable = config_;
  comparable.train.threads = 0;
  comparable.train.memory = 0;
  ranks_.check_same("config", to_toml(comparable));
}

void Run::begin() {
  enter_stage();
  initialise();
}

void Run::preview() {
  enter_stage();
  observer_.on_start(start_report());
}

// Writes the config last: it makes the directory a run. Initial weights from elsewhere are saved before it, so that the
// run does not need them again. An earlier start that was killed may have left such a checkpoint.
void Run::write_files() {
  if (ranks_.writes()) {
    remove_leftovers(folder_);
    fs::remove_all(folder_ / kCheckpointFolder);
    if (dataset_.tokenizer != nullptr) write_file(folder_ / kTokenizerFile, dataset_.tokenizer->to_json());
    if (!config_.init.from.empty()) copy_model_files(config_.init, folder_);
    if (!config_.data.chat_template.empty() && dataset_.chat) {
      write_file(folder_ / formats::kChatTemplateFile, dataset_.chat->template_text);
    }
    if (config_.is_adapted()) write_base(config_.init, state_, folder_);
  }
  if (!config_.init.from.empty()) save();
  if (ranks_.writes()) write_config(config_, folder_);
}

void Run::resume(const RunConfig& own) {
  if (ranks_.writes()) remove_leftovers(folder_);
  ranks_.meet();
  std::optional<checkpoint::Checkpoint> found;
  ranks_.agree([&] { found = newest_checkpoint(folder_, warn_, checkpoint::Parts::kAll); });
  const std::optional<RunState> saved = found ? std::optional(found->state()) : std::nullopt;
  ranks_.check_same(fmt::format("{}: newest checkpoint, in a directory that all ranks share", folder_.string()),
                    saved ? fmt::format("step {}", saved->step) : "none");
  const bool changed = has_changes(own, config_);
  ranks_.agree([&] {
    if (found && !found->has_optimizer()) refuse_imported(folder_);
    formats::read_model_files(folder_);  // fails now rather than at the next checkpoint
    check_same_run(own, saved);
    if (saved) state_ = *saved;
    if (saved && saved->stream) report_rereading(*saved->stream);
    if (changed) record_changes(own, state_.step);
    enter_stage();
    if (found) {
      if (config_.is_adapted()) load_base(folder_, *stage_->model);
      stage_->checkpoints.load(*found);
      restore(*saved);
    } else {
      initialise();
    }
  });
  if (changed && ranks_.writes()) write_config(with_change(own, config_, state_.step + 1), folder_);
}

void refuse_imported(const std::filesystem::path& folder) {
  throw Error(
      "[run] {}: expected a run of `quern train`, found an imported model, which has no data to resume with; "
      "start from it: quern train --from {} DATA --run NEW",
      folder.string(), folder.string());
}

// Compressed text cannot be read from the middle.
void Run::report_rereading(const data::StreamPosition& position) {
  if (const std::string text = resume_text(dataset_, position); !text.empty()) observer_.on_note(text);
}

// Only in memory: what cannot be allocated must not be recorded.
void Run::record_changes(const RunConfig& own, uint64_t step) {
  if (config_.train.steps < step) {
    throw Error("[config] train.steps: expected at least {}, the steps that the run has done, found {}", step,
                config_.train.steps);
  }
  config_.history = with_change(own, config_, step + 1).history;
  validate(config_);
}

void Run::initialise() {
  if (config_.init.from.empty() || config_.is_adapted()) stage_->model->initialise(config_.train.seed);
  if (!config_.init.from.empty()) load_source(config_.init, *stage_->model);
  stage_->trainer.optimizer().reset();
  stage_->trainer.resume();
}

// The previous stage is destroyed first, so that the memory of two is never needed.
void Run::enter_stage() {
  const uint64_t lanes = config_at(config_, state_.step + 1).lanes(), ranks = ranks_.place().ranks;
  if (lanes < ranks) {
    throw AgreedError(
        Error("[dist] train.lanes: expected at least one for each of {} ranks, found {} from step {} on; start fewer "
              "ranks, or set more lanes",
              ranks, lanes, state_.step + 1));
  }
  stage_.reset();
  stage_ = std::make_unique<Stage>(
      StageContext{
          .config = config_, .folder = folder_, .dataset = dataset_, .program_bytes = program_bytes_, .ranks = ranks_},
      state_);
  state_.precision = precision_name(stage_->config.train.precision);
  if (profile_ != nullptr) stage_->trainer.set_profile(profile_);
}

// Changes to the settings of the next step as a run does that is stopped and resumed: through a checkpoint. False at
// the end of the run. A stage is empty if a run that had finished was given other settings but no more steps.
bool Run::next_stage() {
  if (!next_change(config_, stage_->first_step)) return false;
  if (!stage_->checkpoints.is_saved(state_.step)) save_and_report();
  const checkpoint::Checkpoint saved = stage_->checkpoints.open(state_.step);
  enter_stage();
  if (config_.is_adapted()) load_base(folder_, *stage_->model);
  stage_->checkpoints.load(saved);
  restore(saved.state());
  stage_->model->weights().release_adapted();
  report_settings();
  return true;
}

RunResult Run::train() {
  stage_->model->weights().release_adapted();
  observer_.on_start(start_report());
  report_settings();
  const bool was_finished = state_.step > 0 && state_.step >= config_.train.steps;
  while (!is_stopped()) {
    if (state_.step >= stage_->last_step && !next_stage()) break;
    if (state_.step < stage_->last_step) train_step();
  }
  end();
  return {.step = state_.step,
          .finished = state_.step >= config_.train.steps,
          .loss = state_.loss,
          .validation_loss = state_.validation_loss,
          .resumed = !was_finished};
}

void Run::train_step() {
  StepReport report = stage_->trainer.step();
  if (stage_->config.is_due(stage_->config.log.interval, state_.step)) report.memory = stage_->trainer.memory();
  const std::exception_ptr failure = failure_of([&] { report_health(); });
  if (report.trouble != Trouble::kNone) {
    if (failure) std::rethrow_exception(failure);  // not saved: the policy may undo this step
    if (!handle_incident(report)) return;
  }
  finish_step(report, failure);
}

RunStart Run::start_report() {
  return {.first_step = state_.step + 1,
          .steps = config_.train.steps,
          .incidents = state_.incidents,
          .parameters = stage_->model->parameters().count(),
          .trainable = stage_->model->parameters().trainable_count(),
          .train_tokens = dataset_.train_tokens,
          .validation_tokens = dataset_.validation_tokens(),
          .estimated = dataset_.is_streaming(),
          .chat = dataset_.chat ? dataset_.chat->kinds + dataset_.chat->summary.text() : std::string(),
          .rows = dataset_.chat ? dataset_.chat->train.size() : 0,
          .vocabulary = dataset_.vocabulary,
          .flops_per_token = stage_->model->activations().training_flops(config_.model.context, counted_share()),
          .floor = dataset_.floor,
          .loss_parts = stage_->model->loss_parts(),
          .ranks = ranks_.place().ranks,
          .plan = &stage_->plan,
          .set_profile = [this](Profile* profile) {
            profile_ = profile;
            stage_->trainer.set_profile(profile);
          }};
}

double Run::counted_share() const {
  if (!dataset_.chat) return 1;
  return static_cast<double>(dataset_.chat->summary.targets) /
         static_cast<double>(dataset_.chat->train.size() * config_.model.context);
}

void Run::report_settings() {
  std::string change;
  for (const RecordedChange& recorded : recorded_changes(config_)) {
    if (recorded.from_step == state_.step + 1) change = to_text(recorded);
  }
  observer_.on_settings({.first_step = state_.step + 1, .config = stage_->config, .change = change});
}

// If an observer fails, for example because metrics.jsonl cannot be written, the run is saved before it ends. If
// validation fails, for example on damaged data, it is not saved: every checkpoint contains its validation loss.
void Run::finish_step(const StepReport& report, std::exception_ptr failure) {
  const RunConfig& config = stage_->config;
  const auto is_due = [&](uint64_t interval) { return config.is_due(interval, state_.step); };
  if (!failure) {
    failure = failure_of([&] {
      observer_.on_step(report);
      if (config.log.histogram_interval > 0 && is_due(config.log.histogram_interval)) show_weights();
    });
  }
  compare_weights();
  stage_->validation.measure(stage_->trainer, state_);
  if (is_due(config.checkpoint.interval)) failure = ranks_.agreed(failure);  // all of them save, or none
  if (!failure) {
    failure = failure_of([&] {
      if (state_.validation_loss) observer_.on_validation(state_.step, *state_.validation_loss);
      if (ranks_.writes() && stage_->samples.is_due(state_.step)) show_sample();
      if (is_due(config.checkpoint.interval)) save_and_report();
      observer_.on_step_end(state_.step);
    });
  }
  if ((failure = ranks_.agreed(failure))) end_after(failure);
}

// A rank with a broken memory or network must not go on with other weights than the others: a line for each parameter,
// so that the first one that differs is named.
void Run::compare_weights() const {
  const uint64_t interval = stage_->config.dist.check_interval;
  if (!ranks_.several() || interval == 0 || !stage_->config.is_due(interval, state_.step)) return;
  std::string hashes;
  for (const checkpoint::TensorRef& tensor : stage_->checkpoints.tensors().weights) {
    hashes += fmt::format("{} {:016x}\n", tensor.name, quick_hash(std::as_bytes(tensor.values)));
  }
  ranks_.check_same(fmt::format("weights after step {}", state_.step), hashes);
}

// Saving may fail as well, for example on a full disk; the first failure is the one to report.
void Run::end_after(const std::exception_ptr& failure) {
  if (!stage_->checkpoints.is_saved(state_.step)) static_cast<void>(failure_of([&] { save(); }));
  std::rethrow_exception(failure);
}

void Run::end() {
  if (!stage_->checkpoints.is_saved(state_.step)) save_and_report();
  observer_.on_end({.planned_bytes = stage_->plan.memory.total(),
                    .peak_bytes = peak_resident_bytes(),
                    .finished = state_.step >= config_.train.steps,
                    .weights_hash = ranks_.writes() ? weights_hash() : std::string()});
}

fs::path Run::save() { return stage_->checkpoints.save(state_); }

void Run::report_health() {
  const HealthReport* report = stage_->health.report(stage_->trainer.context());
  if (report == nullptr) return;
  observer_.on_health(*report);
  for (const std::string& warning : health_warnings_.of(*report)) observer_.on_warning(warning);
}

void Run::show_weights() const {
  std::vector<NamedValues> tensors;
  for (const checkpoint::TensorRef& tensor : stage_->checkpoints.tensors().weights) {
    tensors.push_back({tensor.name, tensor.values});
  }
  observer_.on_weights(state_.step, tensors);
}

// A text that cannot be written, because the logits are not finite, is no reason to end a run.
void Run::show_sample() const {
  SampleReport sample;
  try {
    sample = stage_->samples.write(*stage_->model, state_.step, stage_->plan.threads);
  } catch (const Error& error) {
    return warn_(fmt::format("no sample after step {}: {}", state_.step, error.what()));
  }
  observer_.on_sample(sample);
}

// Of what the last checkpoint holds: the file has the same tensors in the same order.
std::string Run::weights_hash() const { return checkpoint::weights_hash(stage_->checkpoints.tensors().weights); }

RunState Run::initial_state() const {
  return {.stream = dataset_.has_position() ? std::optional(data::StreamPosition{}) : std::nullopt,
          .seed = config_.train.seed,
          .precision = std::string(precision_name(config_.train.precision)),
          .data = dataset_.fingerprint};
}

void Run::restore(const RunState& saved) {
  state_ = saved;
  state_.loss_scale = 1;  // older versions scaled fp16 gradients
  state_.precision = precision_name(stage_->config.train.precision);
  stage_->trainer.resume();
}

void Run::check_same_run(const RunConfig& own, const std::optional<RunState>& state) const {
  check_same_text(own, state);
  if (!state) return;
  const auto check = [&](std::string_view setting, const auto& expected, const auto& found) {
    if (expected == found) return;
    throw Error("[run] {}: {}: expected {}, as in its checkpoint, found {}", (folder_ / kConfigFile).string(), setting,
                expected, found);
  };
  check("train.seed", state->seed, own.train.seed);
  if (state->step > 0) {
    check("train.precision", state->precision, precision_name(config_at(own, state->step).train.precision));
  }
  const auto name = [](bool stream) -> std::string_view { return stream ? "a stream" : "no stream"; };
  check("data.sampling", name(state->stream.has_value()), name(dataset_.has_position()));
  check_same_data(config_, dataset_, state->data);
}

// Text that moved has the same tokens as before.
void Run::check_same_text(const RunConfig& own, const std::optional<RunState>& state) const {
  if (own.data.paths == config_.data.paths && own.data.sources == config_.data.sources) return;
  check_same_weights(own, config_);
  if (!state) {
    throw Error("[run] {}: has no checkpoint yet, so it cannot be told whether {} is the same text; start a new run",
                folder_.string(), data_name(config_));
  }
  if (dataset_.fingerprint == state->data) return;
  throw Error(
      "[data] {}: expected the text of the run, in another place, found other text; to train on it, start a new run: "
      "quern {} {} {} --run NEW",
      data_name(config_), config_.has_chat() ? "finetune --base" : "train --from", folder_.string(),
      data_arguments(config_));
}

// Saves the failed step and applies the policy. Returns whether the step counts; throws Error to end the run.
bool Run::handle_incident(const StepReport& step) {
  const RunState before = stage_->trainer.context().before;
  const RunConfig::Diagnostics& diagnostics = stage_->config.diagnostics;
  const bool too_many = state_.incidents >= diagnostics.incident_limit;
  const Policy action = too_many ? Policy::kStop : diagnostics.policy;
  IncidentReport report{.step = step.step, .number = before.incidents + 1, .trouble = step.trouble, .action = action};
  record_incident(step, report);
  const uint64_t stage = stage_->first_step;
  if (action == Policy::kStop) {
    restore(before);
  } else {
    ++state_.incidents;
    if (action == Policy::kRollback) roll_back();
  }
  report.resumed_after = state_.step;
  observer_.on_incident(report);
  if (stage_->first_step != stage) report_settings();
  if (action != Policy::kStop) return action == Policy::kSkip;
  end();
  const Error error(
      "[run] {}; {}the run stopped before this step's update and can be resumed (diagnostics.policy); saved in {}",
      report.text, too_many ? fmt::format("{} incidents have reached the limit; ", state_.incidents) : "",
      report.folder.empty() ? "no folder, see the warning" : report.folder.string());
  if (ranks_.several()) throw AgreedError(error);
  throw error;
}

// Fills `report` with details of the step. Weights and moments must still be those before the step.
void Run::record_incident(const StepReport& step, IncidentReport& report) {
  stage_->trainer.gather_gradient();
  if (!ranks_.writes()) return stage_->checkpoints.send_states();
  const StepTokens tokens = read_step(stage_->trainer.context(), stage_->trainer.context().before);
  const Incident incident = examine_incident(stage_->trainer.context(), step, tokens);
  report.text = describe(incident, stage_->plan.cut.whole());
  try {
    report.folder = save_incident(folder_ / kIncidentFolder, incident,
                                  {.config = stage_->config,
                                   .model = stage_->model->config(),
                                   .tensors = stage_->checkpoints.tensors(),
                                   .tokens = tokens});
  } catch (const Error& error) {
    warn_(fmt::format("the incident of step {} could not be saved: {}", step.step, error.what()));
  }
  stage_->checkpoints.finish_states();
}

// Returns to the last checkpoint, or to the beginning. Since runs are deterministic, the same data would cause the same
// incident, so training continues with the data after it. If the checkpoint is of an earlier stage, the run goes
// through the change of settings again.
void Run::roll_back() {
  const RunState after = state_;
  const std::optional<checkpoint::Checkpoint> found = stage_->checkpoints.newest_regular(warn_);
  state_ = found ? found->state() : initial_state();
  state_.incidents = after.incidents;
  state_.skipped_steps = after.step + after.skipped_steps - state_.step;
  state_.data_position = after.data_position;
  state_.stream = after.stream;
  const RunState target = state_;
  const bool other_stage = !stage_->contains(target.step + 1);
  if (other_stage) enter_stage();
  if (other_stage && found && config_.is_adapted()) load_base(folder_, *stage_->model);
  if (found) {
    stage_->checkpoints.load(*found);
  } else {
    stage_->checkpoints.forget();
    initialise();
  }
  restore(target);
  stage_->model->weights().release_adapted();
}

}  // namespace quern::train
