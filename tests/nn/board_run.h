// A small board network, some positions, and its gradient.
#pragma once

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "core/team.h"
#include "nn/board_twin.h"
#include "support/support.h"

namespace quern::nn {

inline constexpr size_t kPositions = 5;

// 12 squares of 3 planes, and 31 actions: three per square, of which the last five belong to none.
inline BoardConfig small_board() {
  return {.squares = 12, .planes = 3, .actions = 31, .width = 24, .layers = 2, .heads = 3, .value_weight = 0.7};
}

struct BoardVariant {
  const char* name;
  BoardConfig config;
};
inline std::vector<BoardVariant> board_variants() {
  BoardConfig layernorm = small_board(), one_action = small_board(), exact = small_board();
  layernorm.norm = NormKind::kLayernorm;
  layernorm.activation = Activation::kGelu;
  one_action.actions = 1;
  one_action.planes = 17;
  exact.actions = 24;
  exact.squares = 6;
  exact.inner_width = 33;
  exact.norm_epsilon = 1e-2;
  return {{"Default", small_board()}, {"LayernormGelu", layernorm}, {"OneAction", one_action}, {"Exact", exact}};
}

struct Boards {
  explicit Boards(const BoardConfig& board, size_t positions = kPositions, unsigned seed = 5)
      : config(board), count(positions), planes(test::normal(count * board.planes * board.squares, seed)) {
    std::mt19937 random(seed);
    for (size_t s = 0; s < count; ++s) {
      add_shares(policy, config.actions, 3, random);
      add_shares(outcome, kOutcomes, 1'000'000, random);
    }
  }

  MicroBatch batch(size_t first = 0, size_t n = kPositions) const {
    return {.columns = {{kPlanesColumn, nullptr, planes.data() + first * config.planes * config.squares},
                        {kPolicyColumn, nullptr, policy.data() + first * config.actions},
                        {kOutcomeColumn, nullptr, outcome.data() + first * kOutcomes}},
            .sequences = n,
            .T = config.squares};
  }

  BoardConfig config;
  size_t count;
  std::vector<float> planes, policy = {}, outcome = {};

 private:
  // n shares that sum to 1; about one in `every` is of a move that is not legal, but never the first.
  static void add_shares(std::vector<float>& to, size_t n, unsigned every, std::mt19937& random) {
    std::vector<float> shares;
    float sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const bool legal = i == 0 || random() % every != 0;
      shares.push_back(legal ? static_cast<float>(random() % 8) + (i == 0 ? 1.0f : 0.0f) : -1.0f);
      sum += std::max(shares.back(), 0.0f);
    }
    for (const float share : shares) to.push_back(share < 0 ? -1.0f : share / sum);
  }
};

// Weights large enough that every gradient is.
inline void fill_board(BoardModel& model) {
  model.initialise(3);
  const std::vector<float> noise = test::normal(model.weights().values().size(), 9, 0.25f);
  for (size_t i = 0; i < noise.size(); ++i) model.weights().values()[i] += noise[i];
  model.weights().repack();
}

struct BoardResult {
  double loss;
  std::vector<float> losses, gradient;
  bool operator==(const BoardResult&) const = default;
};

// Forward and backward of all positions, `at_once` of them per micro-batch, with the activations of `interval` layers
// at a time (0: of all).
inline BoardResult run_board(const BoardModel& model, const Boards& data, size_t at_once = kPositions,
                             size_t interval = 0) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(), {.sequences = at_once, .backward = true, .interval = interval});
  BoardResult result{0, {}, {}};
  for (size_t s = 0; s < kPositions; s += at_once) {
    MicroBatch batch = data.batch(s, std::min(at_once, kPositions - s));
    batch.turn = {.number = static_cast<uint32_t>(s / at_once), .first = s == 0, .last = s + at_once >= kPositions};
    result.loss += model.forward_backward(batch, {.scale = 0.5f, .gradient = gradient}, work);
    result.losses.insert(result.losses.end(), work.losses.begin(),
                         work.losses.begin() + static_cast<ptrdiff_t>(batch.sequences * batch.T));
  }
  gradient.join_all();
  result.gradient.assign(gradient.values().begin(), gradient.values().end());
  return result;
}

// Calls run(member) on each thread of a team.
template <typename Run>
void in_team(size_t members, const Run& run) {
  Team team(members);
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < members; ++i) {
    threads.emplace_back([&, i] { run(Member{.team = &team, .index = i, .size = members}); });
  }
}

// The same in one micro-batch by a team.
inline BoardResult run_board_in_team(const BoardModel& model, const Boards& data, size_t members, size_t interval = 0) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(),
                 {.sequences = kPositions, .backward = true, .members = members, .interval = interval});
  BoardResult result{0, {}, {}};
  in_team(members, [&](const Member& member) {
    const double sum = model.forward_backward(data.batch(), {.scale = 0.5f, .gradient = gradient}, work, member);
    if (member.leads()) result.loss = sum;
  });
  gradient.join_all();
  result.losses.assign(work.losses.begin(), work.losses.end());
  result.gradient.assign(gradient.values().begin(), gradient.values().end());
  return result;
}

}  // namespace quern::nn
