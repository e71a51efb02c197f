// A network of board positions, for search and self-play: a transformer over the squares of a board, without a causal
// mask, that computes the logits of all actions and the probabilities of win, draw and loss for the player to move.
//
// A sequence is a position. Its loss has two parts: the cross entropy of the policy, and the weighted cross entropy of
// the outcome. The loss of a step is the mean over positions.
#pragma once

#include "nn/layers/block.h"
#include "nn/layers/board_input.h"
#include "nn/layers/norm.h"
#include "nn/layers/policy_head.h"
#include "nn/layers/value_head.h"
#include "nn/model.h"
#include "nn/models/board_config.h"

namespace quern::nn {

class BoardModel final : public Model {
 public:
  BoardModel(const BoardConfig& config, Packing packing);

  // What the model consists of, without allocating it. Error if the config is not valid.
  static Declaration declare(const BoardConfig& config);
  const BoardConfig& config() const { return config_; }

  double forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                          const Member& member = {}) const override;
  double loss(const MicroBatch& batch, Workspace& work, const Member& member = {}) const override;

  // Writes the logits of all actions (positions, actions) and the probabilities of win, draw and loss (positions, 3).
  // Reads the planes alone, of any number of positions: as many at a time as the workspace has sequences. The result
  // for a position does not depend on the others. Does not allocate.
  void evaluate(const MicroBatch& batch, float* logits, float* outcomes, Workspace& work,
                const Member& member = {}) const;

 private:
  struct Layers {
    Layers(Declaration& model, const BoardConfig& config);
    BoardInput input;
    BlockStack blocks;
    Norm final_norm;
    PolicyHead policy;
    ValueHead value;
  };
  struct Built;
  static Built build(const BoardConfig& config);
  BoardModel(const BoardConfig& config, Built built, Packing packing);

  void forward(const Pass& pass) const;
  void losses(const Pass& pass, float scale) const;
  void backward(const Pass& pass) const;

  BoardConfig config_;
  Layers layers_;
};

// Error unless every position of the batch has a legal move in its policy, policies sum to 1, and outcomes do, within
// 1e-3: what the loss assumes. For whoever brings the data.
void check_targets(const BoardConfig& config, const MicroBatch& batch);

}  // namespace quern::nn
