// Positions that are evaluated together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "games/game.h"
#include "selfplay/evaluator.h"

namespace quern::selfplay {

// One thread. Allocates when a batch is larger than all before it.
class EvaluationBatch {
 public:
  // For at most `positions` of the game.
  EvaluationBatch(const games::GameSpec& spec, size_t positions);

  size_t size() const noexcept { return size_; }

  // Adds a position and returns its index. A position with a key that is in the batch already is not added again: it
  // has the index of the first.
  size_t add(const games::Position& position, std::optional<uint64_t> key);

  void evaluate(Evaluator& evaluator);

  // What was evaluated for an index, until clear(): (actions) and (3).
  std::span<const float> logits(size_t index) const noexcept { return {logits_.data() + index * actions_, actions_}; }
  std::span<const float> outcome(size_t index) const noexcept { return {outcomes_.data() + index * 3, 3}; }

  void clear() noexcept;

 private:
  struct Cell {
    uint64_t key;
    uint64_t round;  // of the batch that the cell was written in
    size_t index;
  };

  Cell& cell_of(uint64_t key) noexcept;

  size_t plane_numbers_, actions_;
  size_t size_ = 0;
  uint64_t round_ = 1;
  std::vector<Cell> cells_;  // open addressing; at most half full
  std::vector<float> planes_, logits_, outcomes_;
};

}  // namespace quern::selfplay
