// The network of a board game with weights that no longer change: what actors, matches and players use.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/models/board.h"
#include "selfplay/model.h"

namespace quern::learn {

class Network final : public selfplay::Model {
 public:
  // With the weights of a model that is being trained, which must not change meanwhile.
  explicit Network(const nn::BoardModel& trained);
  // With weights from a file. Error unless they are those of such a network.
  Network(const nn::BoardConfig& config, const safetensors::File& weights, const std::filesystem::path& path);

  const nn::BoardModel& board() const { return board_; }
  std::unique_ptr<selfplay::Evaluator> make_evaluator(size_t positions) const override;

  // References to its weights, to save them.
  std::vector<safetensors::Tensor> tensors() const;

 private:
  nn::BoardModel board_;
};

}  // namespace quern::learn
