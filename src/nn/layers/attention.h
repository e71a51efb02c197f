// Causal self-attention: projection to queries, keys and values, attention, and projection back. Queries and keys may
// be normalized per head and rotated by their position. Training and decoding are the same layer; when decoding, keys
// and values of earlier positions come from a cache.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"
#include "nn/layers/rotary.h"

namespace quern::nn {

struct AttentionSpec {
  std::string name;  // of the layer, for messages
  std::string qkv;   // of its linear layers
  std::string project;
  size_t width, heads;
  size_t block;
  Initial project_initial = Initial::normal(0.02);
  bool qk_norm = false;                            // RMS norm of each head of queries and keys, without weights
  std::shared_ptr<const RotaryTable> rotary = {};  // null for none; applied after the norm
};

class Attention {
 public:
  Attention(Declaration& model, const AttentionSpec& spec);

  // work.delta = the branch's output, from work.inner. The members synchronize.
  void forward(const Pass& pass, const SavedSet& saved) const;
  // work.dinner = the gradient of the branch's input, from work.dx. Weight gradients in turn. The branch's input is the
  // output of `norm`, which is recomputed. Overwrites work.wide and work.dwide. The members synchronize.
  void backward(const Pass& pass, const SavedSet& saved, const Norm& norm) const;

  const std::string& output_name() const { return project_.name(); }

 private:
  kernels::AttentionShape shape(size_t T) const;
  float* fp32_qkv(const Pass& pass, const SavedSet& saved) const;
  float* fp32_out(const Pass& pass, const SavedSet& saved) const;
  bool transforms() const { return reciprocal_.has_value() || rotary_ != nullptr; }
  void transform(const Pass& pass, const SavedSet& saved, float* qkv) const;
  void transform_backward(const Pass& pass, const SavedSet& saved) const;
  template <typename Rotate>
  void rotate(const Pass& pass, float* qkv, Rotate rotate) const;
  void attend(const Pass& pass, const SavedSet& saved, const float* qkv, float* out) const;
  void attend_to_cache(const Pass& pass, const float* qkv, float* out) const;
  void widen(const Pass& pass, const SavedSet& saved) const;
  void backward_attention(const Pass& pass, const SavedSet& saved) const;

  std::string name_;
  std::string transformed_;  // name of the normalized and rotated queries and keys
  size_t width_, heads_, block_;
  Linear qkv_, project_;
  DropoutSite site_;
  std::shared_ptr<const RotaryTable> rotary_;
  std::optional<SlotId> reciprocal_;  // (R, 2 heads) with QK-norm: of the root mean squares of queries and keys
  SlotId saved_qkv_;                  // (R, 3C), normalized and rotated
  SlotId saved_out_;                  // (R, C)
  SlotId saved_logsumexp_;            // (sequences, heads, T)
};

}  // namespace quern::nn
