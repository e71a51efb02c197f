// The model: token ids in, loss and gradient out. GPT-2's architecture: learned positions, pre-norm, GELU, and an
// output projection tied to the token embedding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/team.h"
#include "nn/gradient.h"
#include "nn/micro_batch.h"
#include "nn/model_config.h"
#include "nn/parameters.h"
#include "nn/watch.h"
#include "nn/weights.h"
#include "nn/workspace.h"

namespace quern {

struct Pass;

class Gpt {
 public:
  // `packed` as for Weights. The weights are zero until initialise(), or until they are loaded into weights().values().
  Gpt(const ModelConfig& config, bool packed);
  Gpt(const Gpt&) = delete;  // not movable either: the weights point to the layout
  Gpt& operator=(const Gpt&) = delete;

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }

  void initialise(uint64_t seed);

  // Returns the sum of the losses of all targets in double precision, summed per sequence; work.losses has the
  // individual losses. Adds `scale` times the gradient of that sum to `gradient`, in the batch's turn. Adding sequences
  // over several turns in order is bit-identical to adding them all in one turn. Token ids must be below the vocabulary
  // size (checked where they are read). Does not allocate. One workspace per team; every member of the team makes the
  // same call, each with itself as `member`. `watch`, if not null, observes the intermediate results; only for a team
  // of one.
  double forward_backward(const MicroBatch& batch, float scale, Gradient& gradient, Workspace& work,
                          const Member& member = {}, Watch* watch = nullptr) const;

  // The same sum, without dropout or gradient.
  double loss(const MicroBatch& batch, Workspace& work, const Member& member = {}) const;

  // Writes the logits of every position, without dropout, to `out` (sequences, T, V). Targets are not read.
  void logits(const MicroBatch& batch, float* out, Workspace& work, const Member& member = {}) const;

 private:
  void forward(const Pass& pass) const;
  void forward_again(const Pass& pass, size_t first, size_t last) const;
  void backward(const Pass& pass) const;

  ModelConfig config_;
  ParameterLayout layout_;
  Weights weights_;
};

}  // namespace quern
