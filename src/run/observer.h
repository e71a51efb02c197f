// The events of a run, and the interface for observing them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "diagnose/health.h"
#include "train/step_report.h"

namespace quern {
class Profile;
}

namespace quern::train {

struct Plan;

struct IncidentReport {
  uint64_t step = 0;
  uint64_t number = 0;  // counted from 1 over the run, not including incidents that stopped it
  Trouble trouble = Trouble::kNone;
  Policy action = Policy::kStop;      // the response
  uint64_t resumed_after = 0;         // the last completed step after the response
  std::filesystem::path folder = {};  // of the incident; empty if it could not be saved
  std::string text = {};              // human-readable description
};

// Reported before the first step.
struct RunStart {
  uint64_t first_step = 1, steps = 0;  // the last step with the newest settings
  uint64_t incidents = 0;              // skipped or rolled back before the first step
  uint64_t parameters = 0, trainable = 0;
  uint64_t train_tokens = 0, validation_tokens = 0;
  bool estimated = false;  // train_tokens is an estimate: the text is tokenised during training
  std::string chat = {};   // what conversations the data has, in several lines; empty for text
  std::string game = {};   // what is played and how, for self-play; empty for text
  uint64_t rows = 0;       // sequences that the conversations take, packed
  uint32_t vocabulary = 0;
  double flops_per_token = 0;                // useful work, as defined for MFU
  std::optional<double> floor = {};          // lowest expected loss on unseen text, in nats per token
  std::vector<std::string> loss_parts = {};  // names of StepReport::loss_parts; one if the loss has no parts
  size_t ranks = 1;
  const Plan* plan = nullptr;  // null if unknown
  // Profiles the workers as threads 0 ... plan->threads - 1 of the profile, which must outlive the run. Null if there
  // are no workers.
  std::function<void(Profile*)> set_profile = {};
};

// How a run of self-play gets on.
struct SelfplayReport {
  uint64_t step = 0;
  uint64_t generation = 0;           // the one that is being played, counted from 0
  bool complete = false;             // it was played and trained on
  uint64_t games = 0;                // in the buffer so far, of the whole run
  uint64_t rows = 0;                 // in the buffer now
  double game_length = 0;            // mean number of moves, since the last complete generation
  double first_wins = 0, draws = 0;  // shares of these games
  double games_per_s = 0, moves_per_s = 0, evaluations_per_s = 0;
  double seconds = 0;       // of the whole run
  double seconds_left = 0;  // expected; 0 if unknown
};

// The strength of a network, measured by games against the network that was measured before it.
struct RatingReport {
  uint64_t step = 0, generation = 0;
  uint64_t games = 0;
  double score = 0.5;  // the share of points against the one before
  double elo = 0;      // sum of the differences since the first network, which has 0
};

// A text that the model wrote.
struct SampleReport {
  uint64_t step = 0;
  std::string prompt = {}, text = {};  // UTF-8; `text` does not contain the prompt
};

// Reported before the first step, and before a later one from which other settings are in force.
struct SettingsReport {
  uint64_t first_step = 1;
  const RunConfig& config;  // in force from this step on
  std::string change = {};  // "from step 501: train.steps 500 -> 1000"; empty if they are the same as before
};

// Reported after the last step.
struct RunEnd {
  uint64_t planned_bytes = 0, peak_bytes = 0;  // of the whole process; peak_bytes is 0 if unknown
  bool finished = false;                       // the last step is done
  std::string weights_hash = {};               // as `quern info` shows it; empty if it was not computed
};

// A named tensor.
struct NamedValues {
  std::string_view name;
  std::span<const float> values;
};

// Called by the training thread, between steps. Arguments are valid during the call only. Does nothing by default.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // Before on_start(), many times a second: the current activity and its progress.
  virtual void on_preparing(std::string_view /*what*/, uint64_t /*done*/, uint64_t /*total*/) {}
  virtual void on_start(const RunStart&) {}
  virtual void on_settings(const SettingsReport&) {}
  virtual void on_step(const StepReport&) {}
  // Every diagnostics.health_interval steps, before on_step().
  virtual void on_health(const HealthReport&) {}
  // Before on_step() of a skipped step. A step that is not counted has no on_step().
  virtual void on_incident(const IncidentReport&) {}
  virtual void on_validation(uint64_t /*step*/, double /*loss*/) {}
  // Of self-play: several times a second while games are played, and after every generation.
  virtual void on_selfplay(const SelfplayReport&) {}
  virtual void on_rating(const RatingReport&) {}
  // Every log.sample_interval steps and after the last one.
  virtual void on_sample(const SampleReport&) {}
  // Every log.histogram_interval steps and after the last one.
  virtual void on_weights(uint64_t /*step*/, std::span<const NamedValues>) {}
  virtual void on_checkpoint(uint64_t /*step*/, const std::filesystem::path&) {}
  // After on_step() and all other calls about the step.
  virtual void on_step_end(uint64_t /*step*/) {}
  virtual void on_end(const RunEnd&) {}
  virtual void on_warning(const std::string&) {}
  // What is good to know and no reason to change anything, such as the files of a directory.
  virtual void on_note(const std::string&) {}
};

}  // namespace quern::train
