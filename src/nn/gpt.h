// The model: text's token ids in, loss and gradient out. Learned positions, norms before each branch, GELU, the output
// projection tied to the token embedding: GPT-2's architecture.
#pragma once

#include <cstddef>
#include <span>

#include "core/aligned_buffer.h"
#include "nn/micro_batch.h"
#include "nn/model_config.h"
#include "nn/parameters.h"
#include "nn/weights.h"
#include "nn/workspace.h"

namespace quern {

// The gradient of the whole model. The token table has two contributions, from the output projection and from the
// input rows; each is its own sum in the order of the sequences, joined once at the end of a step.
class Gradient {
 public:
  explicit Gradient(const ParameterLayout& layout);

  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }
  float* input_rows() { return input_rows_.data(); }  // (V, C)

  void clear();
  void join();  // the token table's gradient += input rows

 private:
  size_t token_table_;
  AlignedBuffer<float> values_, input_rows_;
};

class Gpt {
 public:
  // `packed` as for Weights. The weights are zero until initialise() or until they are loaded into weights().values().
  Gpt(const ModelConfig& config, bool packed);

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }

  void initialise(uint64_t seed);

  // Sum of the losses of all targets, in order, in double precision; work.losses has each. Adds `scale` times the
  // gradient of that sum into `gradient`. Sequences added by calls in order give the bits of one call with all of them.
  // Token ids are below the vocabulary (checked by whoever read them). Allocates nothing. One workspace per thread.
  double forward_backward(const MicroBatch& batch, float scale, Gradient& gradient, Workspace& work) const;

  // The same sum, without dropout and gradient.
  double loss(const MicroBatch& batch, Workspace& work) const;

 private:
  void forward(const MicroBatch& batch, Workspace& work, float dropout) const;
  double output(const MicroBatch& batch, Workspace& work, float scale, float* dx, float* dweight) const;

  ModelConfig config_;
  ParameterLayout layout_;
  Weights weights_;
};

}  // namespace quern
