// What a run tells those who watch it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/team.h"
#include "train/config.h"
#include "train/memory_use.h"

namespace quern::train {

struct Plan;
class Trainer;

// Why a step is an incident: its update is left out, and what is needed to repeat it is saved.
enum class Trouble : uint8_t {
  kNone,
  kLoss,      // the loss is not finite
  kGradient,  // the gradient is not
  kSpike,     // the loss is too far above those before
};

struct StepReport {
  uint64_t step = 0;  // counted from 1
  double loss = 0;    // mean over the step's tokens, before the update
  double rate = 0;
  double gradient_norm = 0;          // before clipping
  bool finite = true;                // of the gradient
  Trouble trouble = Trouble::kNone;  // any: the update was left out
  double spike_z = 0;                // deviations of the loss above the mean of those before
  uint64_t tokens = 0;               // of this step
  double seconds = 0;
  std::optional<MemoryUse> memory = {};  // after it; only of steps that are logged
  // How the workers spent them.
  size_t threads = 1;
  WaitTimes waits = {};                    // of all threads; a wait is in the step in which it was over
  double data_wait = 0;                    // of the thread that feeds them: for batches
  std::optional<double> cpu_seconds = {};  // that the process had of the cores

  bool skipped() const { return !finite || trouble != Trouble::kNone; }
};

// The gradient of a tensor in one step, before clipping.
struct TensorHealth {
  std::string_view name;
  double norm = 0;
  double mean = 0;
  double largest = 0;       // magnitude; infinite or NaN when one of the numbers is
  double zeros = 0;         // share of the numbers
  double update_ratio = 0;  // norm of the update over the norm of the weights before it; 0 when there was none
};

struct HealthReport {
  uint64_t step = 0;
  double norm = 0;  // of the whole gradient
  std::span<const TensorHealth> tensors;
};

struct IncidentReport {
  uint64_t step = 0;
  uint64_t number = 0;  // of the run's incidents; counted from 1, those that stopped it not included
  Trouble trouble = Trouble::kNone;
  Policy action = Policy::kStop;      // what is done about it
  uint64_t goes_on_after = 0;         // the step that is the last one done then
  std::filesystem::path folder = {};  // of the incident; empty when it could not be saved
  std::string text = {};              // what happened, for people
};

// Before the first step.
struct RunStart {
  uint64_t first_step = 1, steps = 0;
  uint64_t incidents = 0;  // skipped or rolled back before the first step
  uint64_t parameters = 0;
  uint64_t train_tokens = 0, validation_tokens = 0;
  bool estimated = false;  // train_tokens: the text is tokenised while it is read
  uint32_t vocabulary = 0;
  double flops_per_token = 0;   // useful work, as MFU counts it
  std::optional<double> floor;  // lowest expected loss on unseen text, in nats per token
  const Plan* plan = nullptr;   // null: not known
  Trainer* trainer = nullptr;   // for observers that look closer; null: there is none
};

// After the last step.
struct RunEnd {
  uint64_t planned_bytes = 0, peak_bytes = 0;  // of the whole process; a peak of 0: not known
};

// A tensor.
struct NamedValues {
  std::string_view name;
  std::span<const float> values;
};

// Called by the thread that trains, between steps; what it is given lives for the call. Does nothing by default.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // Before on_start(), many times a second: what is being done and how far it is.
  virtual void on_preparing(std::string_view /*what*/, uint64_t /*done*/, uint64_t /*total*/) {}
  virtual void on_start(const RunStart&) {}
  virtual void on_step(const StepReport&) {}
  // Every diagnostics.health_interval steps, before on_step().
  virtual void on_health(const HealthReport&) {}
  // Before on_step() of a step that is skipped; there is none for one that is not counted.
  virtual void on_incident(const IncidentReport&) {}
  virtual void on_validation(uint64_t /*step*/, double /*loss*/) {}
  // Every log.histogram_interval steps and after the last.
  virtual void on_weights(uint64_t /*step*/, std::span<const NamedValues>) {}
  virtual void on_checkpoint(uint64_t /*step*/, const std::filesystem::path&) {}
  // After on_step() and all of the above that it brought: what is to be known about the step is known.
  virtual void on_step_end(uint64_t /*step*/) {}
  virtual void on_end(const RunEnd&) {}
  virtual void on_warning(const std::string&) {}
};

}  // namespace quern::train
