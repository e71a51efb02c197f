// A transformer block: attention and feed-forward, each preceded by a norm and added to the residual stream.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nn/layers/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/norm.h"

namespace quern::nn {

struct BlockSpec {
  std::string name;  // for messages
  NormSpec norm1;
  AttentionSpec attention;
  NormSpec norm2;
  FeedForwardSpec feed_forward;
};

// What a block's forward pass does at its ends.
struct BlockEnds {
  // Whether work.delta has yet to be added to the residual stream. False if the stream is already complete: after the
  // embedding, or when it was saved.
  bool add_delta = true;
  bool output = true;  // leave the feed-forward output in work.delta; false where only activations are needed
};

// The members synchronize before each of these functions returns.
class Block {
 public:
  // `index` counts the blocks of the model. Blocks of a model must be alike: they share the plan of what they save.
  Block(Declaration& model, const BlockSpec& spec, size_t index);

  // Takes the residual stream from work.stream (and work.delta) through the block, via work.entry(index). Afterwards
  // the stream is work.stream + work.delta.
  void forward(const Pass& pass, const BlockEnds& ends) const;

  // Takes work.dx from the gradient of the block's output to that of its input; adds weight gradients in turn.
  // Overwrites everything in `work` that forward used, except saved tensors.
  void backward(const Pass& pass) const;

  // Shows the pass's observer the gradient of the block's input, the output of `input`.
  void show_input_gradient(const Pass& pass, const std::string& input) const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  size_t index_, width_;
  Norm norm1_;
  Attention attention_;
  Norm norm2_;
  FeedForward feed_forward_;
};

// The blocks of a model, one after another, with the recomputation of activations that the workspace does not store.
class BlockStack {
 public:
  // `spec_of(index)` is the spec of each block.
  template <typename SpecOf>
  BlockStack(Declaration& model, size_t count, const SpecOf& spec_of) {
    model.activations.blocks = count;
    for (size_t i = 0; i < count; ++i) {
      model.activations.block = {};  // every block declares the same slots
      blocks_.emplace_back(model, spec_of(i), i);
    }
  }

  // The stream at the entry of the first block, where the embedding goes.
  float* input(const Pass& pass) const { return pass.work.entry(0); }
  // From input() to work.stream + work.delta.
  void forward(const Pass& pass) const;
  // work.dx from the gradient of the output to that of the input.
  void backward(const Pass& pass) const;

 private:
  void forward_again(const Pass& pass, size_t first, size_t last) const;

  std::vector<Block> blocks_;
};

}  // namespace quern::nn
