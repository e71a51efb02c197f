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

namespace quern {

struct OptimizerOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;  // for parameters that decay
  float clip = 1.0f;          // maximum norm of the entire gradient; 0 for no limit
};

struct UpdateReport {
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // false: the gradient was not finite and nothing was changed
};

// Sums of squares: of the update, and of the weights before it.
struct Change {
  double update = 0, weights = 0;
};

// Numbers that a rule keeps between steps: one per trainable parameter, with the offsets of the parameter table.
// Checkpoints store them as PARAMETER.NAME.
struct OptimizerState {
  std::string name;
  AlignedBuffer<float> values;
};

// To add a rule, derive from this class: name its states in the constructor, and implement prepare() and apply().
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Decides on an update from the gradient's sum of squares: how much to clip, and whether to update at all (not if the
  // gradient is not finite). `update` counts the updates made, from 1; a step without an update changes no state.
  UpdateReport begin(double squared_norm, double rate, uint64_t update);
  // Then, once for each segment of the table, on any thread: updates its weights. Does not allocate.
  void update(size_t segment, std::span<float> weights, std::span<const float> gradient);

  // The bit-identical update; also returns its size.
  Change update_and_measure(size_t segment, std::span<float> weights, std::span<const float> gradient);

  // Zero at first, and after reset().
  std::span<OptimizerState> states() { return states_; }
  void reset();

 protected:
  // `table` must outlive the optimizer.
  Optimizer(const nn::ParameterTable& table, const OptimizerOptions& options, std::span<const char* const> states);

  struct Update {
    float rate;
    float gradient_scale;  // factor of the gradient, for clipping
    uint64_t number;
  };
  virtual void prepare(const Update& update) = 0;
  // Updates `n` numbers from `offset` on, all in `segment`. The elements of an update must be independent, so that any
  // cut gives the same bits.
  virtual void apply(const nn::Segment& segment, size_t offset, size_t n, float* weights, const float* gradient) = 0;

  const OptimizerOptions& options() const { return options_; }
  float* state(size_t index) { return states_[index].values.data(); }

 private:
  OptimizerOptions options_;
  const nn::ParameterTable* table_;
  std::vector<OptimizerState> states_;
};

std::unique_ptr<Optimizer> make_optimizer(const nn::ParameterTable& table, const OptimizerOptions& options);

// Bytes of all its states.
size_t optimizer_bytes(const nn::ParameterTable& table);

}  // namespace quern
