// The update of a model's parameters from their gradient: what all update rules have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "nn/parameter_table.h"
#include "quern/profile.h"

namespace quern {

enum class OptimizerKind : uint8_t { kAdamW, kMuon };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;  // for parameters that decay
  float clip = 1.0f;          // maximum norm of the entire gradient; 0 for no limit
  // Muon only:
  double matrix_rate = 10;         // learning rate of matrices, relative to that of the other parameters
  double momentum = 0.95;          // reached after
  uint64_t momentum_warmup = 300;  // updates, from 0.85
};

struct UpdateReport {
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // false: the gradient was not finite and nothing was changed
};

// Sums of squares: of the update, and of the weights before it.
struct Change {
  double update = 0, weights = 0;
};

// Numbers that a rule keeps between steps: one for each weight of the parameters that it covers. Checkpoints store them
// as PARAMETER.NAME.
struct StateSpec {
  const char* name;
  bool (*covers)(const nn::Parameter& parameter);
};
struct OptimizerState {
  static constexpr size_t kNone = SIZE_MAX;
  std::string name;
  AlignedBuffer<float> values;
  std::vector<size_t> offsets;  // by ParameterId: of its first number; kNone if the parameter is not covered
};

// What one thread updates at a time: consecutive segments of one parameter.
struct UpdateUnit {
  size_t first_segment, segments;
};

// The work of a unit, for profiles.
struct UnitWork {
  const Region* region;
  double amount;
};

// To add a rule, derive from this class: name its states in the constructor, and implement prepare() and apply(). A
// rule that needs more than one element at a time also defines units and begin_unit().
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Decides on an update from the gradient's sum of squares: how much to clip, and whether to update at all (not if the
  // gradient is not finite). `update` counts the updates made, from 1; a step without an update changes no state.
  UpdateReport begin(double squared_norm, double rate, uint64_t update);

  // The parts of an update, in the order in which they should be started: the largest first.
  std::span<const UpdateUnit> units() const { return units_; }
  // After begin(), once for each unit, on any thread: updates its weights. `thread` differs between concurrent calls.
  // Does not allocate.
  void update(size_t unit, size_t thread, std::span<float> weights, std::span<const float> gradient);
  // The bit-identical update; also returns its size, in the entries of the unit's segments.
  void update_and_measure(size_t unit, size_t thread, std::span<float> weights, std::span<const float> gradient,
                          std::span<Change> changes);
  UnitWork work(size_t unit) const { return work(units_[unit]); }

  // Zero at first, and after reset().
  std::span<OptimizerState> states() { return states_; }
  void reset();

 protected:
  // `table` must outlive the optimizer. Every segment is a unit at first.
  Optimizer(const nn::ParameterTable& table, const OptimizerOptions& options, std::span<const StateSpec> states);

  struct Update {
    float rate;
    float gradient_scale;  // factor of the gradient, for clipping
    uint64_t number;
  };
  // A part of a segment: `n` numbers from `offset` on.
  struct UpdatePiece {
    const nn::Segment& segment;
    size_t offset, n, thread;
    float* weights;
    const float* gradient;
  };
  virtual void prepare(const Update& update) = 0;
  // Before the unit's first apply(), with the same thread. `gradient` is that of the unit's first number.
  virtual void begin_unit(const UpdateUnit& /*unit*/, size_t /*thread*/, const float* /*gradient*/) {}
  // The elements must be independent, so that any cut gives the same bits.
  virtual void apply(const UpdatePiece& piece) = 0;
  virtual UnitWork work(const UpdateUnit& unit) const = 0;

  const OptimizerOptions& options() const { return options_; }
  const nn::ParameterTable& table() const { return *table_; }
  // The number of a state that belongs to the weight at `offset`, which is in `segment`.
  float* state(size_t index, const nn::Segment& segment, size_t offset);
  size_t size_of(const UpdateUnit& unit) const;  // numbers
  std::vector<UpdateUnit> units_;

 private:
  OptimizerOptions options_;
  const nn::ParameterTable* table_;
  std::vector<OptimizerState> states_;
};

// `threads` can call update() concurrently.
std::unique_ptr<Optimizer> make_optimizer(const nn::ParameterTable& table, const OptimizerOptions& options,
                                          size_t threads = 1);

// Bytes of all its states, and of what it computes with.
struct OptimizerBytes {
  size_t states = 0, scratch = 0;
};
OptimizerBytes optimizer_bytes(const nn::ParameterTable& table, OptimizerKind kind, size_t threads);

}  // namespace quern
