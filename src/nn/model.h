// A model that can be trained: parameters, weights, and two passes over a micro-batch. The core of Quern (gradient,
// optimizer, trainer, checkpoints) knows models only through this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/declaration.h"
#include "nn/gradient.h"
#include "nn/key_value_cache.h"
#include "nn/micro_batch.h"
#include "nn/watch.h"
#include "nn/weights.h"
#include "nn/workspace.h"

namespace quern::nn {

// What a backward pass needs besides the batch.
struct BackwardArgs {
  float scale;             // factor of the gradient
  Gradient& gradient;      // to which it is added, in the batch's turn
  Watch* watch = nullptr;  // observes the intermediate results; only for a team of one
};

class Model {
 public:
  Model(const Model&) = delete;  // not movable either: the weights point to the parameter table
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  const ParameterTable& parameters() const { return declaration_.parameters; }
  const ActivationPlan& activations() const { return declaration_.activations; }
  // What it reads of a batch. Targets that are kernels::kIgnoreTarget do not count.
  const std::vector<ColumnSpec>& columns() const { return declaration_.columns; }
  size_t targets_per_sequence() const {
    return declaration_.targets_per_sequence == 0 ? activations().context : declaration_.targets_per_sequence;
  }
  const std::vector<std::string>& loss_parts() const { return declaration_.loss_parts; }
  // The losses of a sequence in the last pass with this workspace, by part; `parts` has as many elements.
  void losses_of_sequence(const Workspace& work, size_t sequence, size_t T, std::span<double> parts) const;
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }

  void initialise(uint64_t seed);

  // Returns the sum of the losses of all targets in double precision, summed per sequence; work.losses has the
  // individual losses. Adds `scale` times the gradient of that sum to the gradient. Adding sequences over several turns
  // in order is bit-identical to adding them all in one turn. Token ids must be below the vocabulary size (checked
  // where they are read). Does not allocate. One workspace per team; every member of the team makes the same call, each
  // with itself as `member`.
  virtual double forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                                  const Member& member = {}) const = 0;

  // The same sum, without dropout or gradient.
  virtual double loss(const MicroBatch& batch, Workspace& work, const Member& member = {}) const = 0;

 protected:
  // The declaration's parameters must be laid out. `packing` as for Weights. The weights are zero until initialise(),
  // or until they are loaded into weights().values().
  Model(Declaration declaration, Packing packing);

 private:
  Declaration declaration_;
  Weights weights_;
};

// The sum of a pass's losses, per sequence.
double sum_of_losses(const MicroBatch& batch, const Workspace& work);

}  // namespace quern::nn
