// The model: text's token ids in, loss and gradient out. Learned positions, norms before each branch, GELU, the output
// projection tied to the token embedding: GPT-2's architecture.
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
  // `packed` as for Weights. The weights are zero until initialise() or until they are loaded into weights().values().
  Gpt(const ModelConfig& config, bool packed);
  Gpt(const Gpt&) = delete;  // and no move: the weights point to the layout
  Gpt& operator=(const Gpt&) = delete;

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }

  void initialise(uint64_t seed);

  // Sum of the losses of all targets in double precision, by sequences; work.losses has each. Adds `scale` times the
  // gradient of that sum into `gradient`, in the batch's turn. Sequences added by turns in order give the bits of one
  // turn with all of them. Token ids are below the vocabulary (checked by whoever read them). Allocates nothing. One
  // workspace per team; every member of the team makes the same call, each with itself as `member`. `watch`, where
  // there is one, is shown what was computed; only for a member alone.
  double forward_backward(const MicroBatch& batch, float scale, Gradient& gradient, Workspace& work,
                          const Member& member = {}, Watch* watch = nullptr) const;

  // The same sum, without dropout and gradient.
  double loss(const MicroBatch& batch, Workspace& work, const Member& member = {}) const;

  // The logits of every position, without dropout, into `out` (sequences, T, V). Targets are not read.
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
