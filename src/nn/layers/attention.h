// Self-attention, causal or bidirectional: projection to queries, keys and values, attention, and projection back.
// Several heads of queries may share keys and values. Queries and keys may be normalized per head and rotated by their
// position. Training and decoding are the same layer; when decoding, keys and values of earlier positions come from a
// cache.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"
#include "nn/layers/rotary.h"

namespace quern::nn {

// RMS norm of each head of queries and keys.
struct HeadNormSpec {
  float epsilon = 1e-5f;
  std::string queries, keys;  // names of the norms, whose weights (head_dim) all heads share; empty: without weights
};

struct AttentionSpec {
  std::string name;                 // of the layer, for messages
  std::vector<std::string> inputs;  // names of the linear layers: one that computes queries, keys and values, or three
  std::string input = {};           // what to call three of them together, in messages
  std::string project;
  size_t width;
  size_t heads, kv_heads, head_dim;
  size_t block;
  bool causal = true;               // a position sees only those up to itself
  Product order = Product::kInOut;  // of all matrices
  bool input_bias = true, project_bias = true;
  Initial project_initial = Initial::normal(0.02);
  std::optional<HeadNormSpec> head_norm = {};
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
  // A norm of each head with a weight.
  struct WeightedNorm {
    ParameterId weight;
    Range heads;  // of queries and keys, counted together
  };
  // A projection and where its output begins in a row of queries, keys and values.
  struct Input {
    Linear linear;
    size_t first;
  };
  static std::vector<Input> make_inputs(Declaration& model, const AttentionSpec& spec);
  void add_head_norm(Declaration& model, const HeadNormSpec& spec);
  void plan(Declaration& model);
  size_t head_rows() const { return heads_ + kv_heads_; }  // heads of queries and keys in a row

  kernels::AttentionShape shape(size_t T) const;
  // Multiply-adds of a product of T positions, per T^2 / 2.
  size_t cost_width() const { return causal_ ? out_width_ : 2 * out_width_; }
  void project_in(const Pass& pass, const SavedSet& saved, float* qkv) const;
  float* fp32_qkv(const Pass& pass, const SavedSet& saved) const;
  float* fp32_out(const Pass& pass, const SavedSet& saved) const;
  float* out_gradient(const Pass& pass) const;
  bool transforms() const { return reciprocal_.has_value() || rotary_ != nullptr; }
  void normalize(const Pass& pass, const SavedSet& saved, float* qkv) const;
  void transform(const Pass& pass, const SavedSet& saved, float* qkv) const;
  void transform_backward(const Pass& pass, const SavedSet& saved) const;
  void normalize_backward(const Pass& pass, const SavedSet& saved, const WeightedNorm& norm) const;
  template <typename Rotate>
  void rotate(const Pass& pass, float* qkv, Rotate rotate) const;
  void attend(const Pass& pass, const SavedSet& saved, const float* qkv, float* out) const;
  void attend_to_cache(const Pass& pass, const float* qkv, float* out) const;
  void widen(const Pass& pass, const SavedSet& saved) const;
  void backward_attention(const Pass& pass, const SavedSet& saved) const;

  std::string name_;
  std::string input_;        // name of the projections to queries, keys and values
  std::string transformed_;  // name of the normalized and rotated queries and keys
  size_t width_, heads_, kv_heads_, head_dim_, block_;
  bool causal_;
  size_t qkv_width_, out_width_;  // of a row of queries, keys and values, and of the output of attention
  std::vector<Input> inputs_;
  std::vector<WeightedNorm> norms_;  // of queries and keys, or none
  float epsilon_ = 0;                // of the norms
  Linear project_;
  DropoutSite site_;
  std::shared_ptr<const RotaryTable> rotary_;
  std::optional<SlotId> reciprocal_;  // (R, heads of queries and keys) with a head norm: of their root mean squares
  std::optional<SlotId> normal_;      // (R, queries and keys) with a weighted norm: normalized, before the weights
  SlotId saved_qkv_;                  // (R, qkv width), normalized and rotated
  SlotId saved_out_;                  // (R, out width)
  SlotId saved_logsumexp_;            // (sequences, heads, T)
};

}  // namespace quern::nn
