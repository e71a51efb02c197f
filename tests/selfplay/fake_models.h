// Models without a network.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "selfplay/game_batch.h"
#include "toy_games.h"

namespace quern::selfplay::test {

// What an evaluation is, as a function of the planes.
class FakeModel : public Model {
 public:
  explicit FakeModel(const games::Game& game) : spec_(game.spec()) {}

  virtual void evaluate(std::span<const float> planes, std::span<float> logits, std::span<float> outcome) const = 0;

  std::unique_ptr<Evaluator> make_evaluator(size_t positions) const override;

  mutable std::atomic<uint64_t> evaluations{0};

 protected:
  games::GameSpec spec_;
  friend class FakeEvaluator;
};

class FakeEvaluator : public Evaluator {
 public:
  FakeEvaluator(const FakeModel& model, size_t positions) : model_(model), positions_(positions) {}

  void evaluate(size_t count, const float* planes, float* logits, float* outcomes) override {
    if (count > positions_) throw std::logic_error("a batch larger than promised");
    const size_t size = model_.spec_.planes * model_.spec_.squares(), actions = model_.spec_.actions;
    for (size_t i = 0; i < count; ++i) {
      model_.evaluate({planes + i * size, size}, {logits + i * actions, actions}, {outcomes + i * 3, 3});
    }
    model_.evaluations += count;
  }

 private:
  const FakeModel& model_;
  size_t positions_;
};

inline std::unique_ptr<Evaluator> FakeModel::make_evaluator(size_t positions) const {
  return std::make_unique<FakeEvaluator>(*this, positions);
}

// Knows nothing.
class UniformModel : public FakeModel {
 public:
  using FakeModel::FakeModel;
  void evaluate(std::span<const float>, std::span<float> logits, std::span<float> outcome) const override {
    std::fill(logits.begin(), logits.end(), 0.0f);
    outcome[0] = outcome[1] = outcome[2] = 1.0f / 3;
  }
};

// Pseudo-random opinions: another one for every position and every seed, as of networks before training.
class HashedModel : public FakeModel {
 public:
  HashedModel(const games::Game& game, uint64_t seed) : FakeModel(game), seed_(mix(seed + 1)) {}

  void evaluate(std::span<const float> planes, std::span<float> logits, std::span<float> outcome) const override {
    uint64_t hash = seed_;
    for (const float value : planes) hash = hash * 0x9E3779B97F4A7C15 + std::bit_cast<uint32_t>(value);
    for (float& logit : logits) logit = 2 * unit(hash) - 1;
    for (float& probability : outcome) probability = 0.1f + unit(hash);
    const float sum = outcome[0] + outcome[1] + outcome[2];
    for (float& probability : outcome) probability /= sum;
  }

 private:
  static float unit(uint64_t& hash) {
    hash = mix(hash + 0x9E3779B97F4A7C15);
    return static_cast<float>(hash >> 40) * 0x1p-24f;
  }

  uint64_t seed_;
};

// Knows the value of every position of tic-tac-toe, and nothing about moves.
class PerfectModel : public FakeModel {
 public:
  using FakeModel::FakeModel;
  void evaluate(std::span<const float> planes, std::span<float> logits, std::span<float> outcome) const override {
    std::fill(logits.begin(), logits.end(), 0.0f);
    const int score = value(bits(planes.first(9)), bits(planes.subspan(9)));
    for (int i = 0; i < 3; ++i) outcome[static_cast<size_t>(i)] = score == 1 - i ? 1.0f : 0.0f;
  }

 private:
  static uint64_t bits(std::span<const float> plane) {
    uint64_t set = 0;
    for (size_t i = 0; i < plane.size(); ++i) set |= static_cast<uint64_t>(plane[i]) << i;
    return set;
  }
  static int value(uint64_t own, uint64_t other) {
    if (TicTacToeRules::has_line(other)) return -1;
    if ((own | other) == 0777) return 0;
    int best = -1;
    for (size_t action = 0; action < 9 && best < 1; ++action) {
      const uint64_t stone = TicTacToeRules::landing(own | other, action);
      if (stone != 0) best = std::max(best, -value(other, own | stone));
    }
    return best;
  }
};

// Fails at its n-th evaluation.
class FailingModel : public UniformModel {
 public:
  FailingModel(const games::Game& game, uint64_t after) : UniformModel(game), after_(after) {}
  void evaluate(std::span<const float> planes, std::span<float> logits, std::span<float> outcome) const override {
    if (evaluations > after_) throw std::runtime_error("the network has failed");
    UniformModel::evaluate(planes, logits, outcome);
  }

 private:
  uint64_t after_;
};

}  // namespace quern::selfplay::test
