// The events of a run, and the interface for observing them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "core/team.h"
#include "train/memory_use.h"

namespace quern::train {

struct Plan;
class Trainer;

// Why a step is an incident. Its update is skipped, and the state needed to repeat it is saved.
enum class Trouble : uint8_t {
  kNone,
  kLoss,      // the loss is not finite
  kGradient,  // the gradient is not finite
  kSpike,     // the loss is too far above the previous ones
};

struct StepReport {
  uint64_t step = 0;  // counted from 1
  double loss = 0;    // mean over the step's tokens, before the update
  double rate = 0;
  double gradient_norm = 0;          // before clipping
  bool finite = true;                // the gradient
  Trouble trouble = Trouble::kNone;  // if not kNone, the update was skipped
  double spike_z = 0;                // standard deviations of the loss above the mean of the previous ones
  uint64_t tokens = 0;               // in this step
  double seconds = 0;
  std::optional<MemoryUse> memory = {};  // after the step; only for logged steps
  // How the workers spent these seconds.
  size_t threads = 1;
  WaitTimes waits = {};                    // sum over threads; a wait counts in the step in which it ended
  double data_wait = 0;                    // time the feeding thread waited for batches
  std::optional<double> cpu_seconds = {};  // CPU time of the process

  bool skipped() const { return !finite || trouble != Trouble::kNone; }
};

// Gradient statistics of a tensor in one step, before clipping.
struct TensorHealth {
  std::string_view name;
  double norm = 0;
  double mean = 0;
  double largest = 0;       // magnitude; infinite or NaN if one of the values is
  double zeros = 0;         // fraction of values that are 0
  double update_ratio = 0;  // norm of the update over the norm of the weights before it; 0 without an update
};

struct HealthReport {
  uint64_t step = 0;
  double norm = 0;  // of the whole gradient
  std::span<const TensorHealth> tensors;
};

struct IncidentReport {
  uint64_t step = 0;
  uint64_t number = 0;  // counted from 1 over the run, not including incidents that stopped it
  Trouble trouble = Trouble::kNone;
  Policy action = Policy::kStop;      // the response
  uint64_t goes_on_after = 0;         // the last completed step after the response
  std::filesystem::path folder = {};  // of the incident; empty if it could not be saved
  std::string text = {};              // human-readable description
};

// Reported before the first step.
struct RunStart {
  uint64_t first_step = 1, steps = 0;
  uint64_t incidents = 0;  // skipped or rolled back before the first step
  uint64_t parameters = 0;
  uint64_t train_tokens = 0, validation_tokens = 0;
  bool estimated = false;  // train_tokens is an estimate: the text is tokenised during training
  uint32_t vocabulary = 0;
  double flops_per_token = 0;   // useful work, as defined for MFU
  std::optional<double> floor;  // lowest expected loss on unseen text, in nats per token
  const Plan* plan = nullptr;   // null if unknown
  Trainer* trainer = nullptr;   // for observers that need details; may be null
};

// Reported after the last step.
struct RunEnd {
  uint64_t planned_bytes = 0, peak_bytes = 0;  // of the whole process; peak_bytes is 0 if unknown
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
  virtual void on_step(const StepReport&) {}
  // Every diagnostics.health_interval steps, before on_step().
  virtual void on_health(const HealthReport&) {}
  // Before on_step() of a skipped step. A step that is not counted has no on_step().
  virtual void on_incident(const IncidentReport&) {}
  virtual void on_validation(uint64_t /*step*/, double /*loss*/) {}
  // Every log.histogram_interval steps and after the last one.
  virtual void on_weights(uint64_t /*step*/, std::span<const NamedValues>) {}
  virtual void on_checkpoint(uint64_t /*step*/, const std::filesystem::path&) {}
  // After on_step() and all other calls about the step.
  virtual void on_step_end(uint64_t /*step*/) {}
  virtual void on_end(const RunEnd&) {}
  virtual void on_warning(const std::string&) {}
};

}  // namespace quern::train
