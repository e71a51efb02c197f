#include "selfplay/evaluation_batch.h"

#include <algorithm>
#include <bit>

namespace quern::selfplay {

EvaluationBatch::EvaluationBatch(const games::GameSpec& spec, size_t positions)
    : plane_numbers_(spec.planes * spec.squares()),
      actions_(spec.actions),
      cells_(std::bit_ceil(2 * positions), Cell{0, 0, 0}) {}

// The cell with this key, or the one where it belongs.
EvaluationBatch::Cell& EvaluationBatch::cell_of(uint64_t key) noexcept {
  const size_t mask = cells_.size() - 1;
  size_t at = (key ^ key >> 32) & mask;
  while (cells_[at].round == round_ && cells_[at].key != key) at = (at + 1) & mask;
  return cells_[at];
}

size_t EvaluationBatch::add(const games::Position& position, std::optional<uint64_t> key) {
  if (key) {
    Cell& cell = cell_of(*key);
    if (cell.round == round_) return cell.index;
    cell = {*key, round_, size_};
  }
  planes_.resize(std::max(planes_.size(), (size_ + 1) * plane_numbers_));
  position.write_planes({planes_.data() + size_ * plane_numbers_, plane_numbers_});
  return size_++;
}

void EvaluationBatch::evaluate(Evaluator& evaluator) {
  if (size_ == 0) return;
  logits_.resize(std::max(logits_.size(), size_ * actions_));
  outcomes_.resize(std::max(outcomes_.size(), size_ * 3));
  evaluator.evaluate(size_, planes_.data(), logits_.data(), outcomes_.data());
}

void EvaluationBatch::clear() noexcept {
  size_ = 0;
  ++round_;
}

}  // namespace quern::selfplay
