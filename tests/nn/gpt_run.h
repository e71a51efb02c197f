// A small model, some data, and its gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "core/team.h"
#include "kernels/cross_entropy.h"
#include "nn/gpt_twin.h"
#include "nn/models/transformer.h"
#include "support/model_variants.h"
#include "support/support.h"

namespace quern::nn {

inline constexpr size_t kT = 11, kSequences = 3;

inline ModelConfig small_config(float dropout = 0.0f) {
  return {.layers = 2, .heads = 3, .width = 24, .context = 13, .vocabulary = 29, .dropout = dropout};
}

struct Data {
  Data() {
    std::mt19937 random(5);
    for (size_t i = 0; i < kSequences * kT; ++i) {
      tokens.push_back(static_cast<int32_t>(random() % 29));
      targets.push_back(static_cast<int32_t>(random() % 29));
    }
    targets[4] = kernels::kIgnoreTarget;
  }
  MicroBatch batch(size_t first = 0, size_t count = kSequences) const {
    MicroBatch batch{
        .columns = {{kTokensColumn, tokens.data() + first * kT}, {kTargetsColumn, targets.data() + first * kT}},
        .sequences = count,
        .T = kT,
        .seed = 42,
        .step = 7,
        .first_sequence = static_cast<uint32_t>(20 + first)};
    if (!positions.empty()) batch.columns.add({kPositionsColumn, positions.data() + first * kT});
    return batch;
  }
  std::vector<int32_t> tokens, targets;
  std::vector<int32_t> positions = {};  // empty: every sequence is one document
};

// Weights large enough that every gradient is.
inline void fill(Model& model) {
  model.initialise(3);
  const std::vector<float> noise = test::normal(model.weights().values().size(), 9, 0.25f);
  for (size_t i = 0; i < noise.size(); ++i) model.weights().values()[i] += noise[i];
  model.weights().repack();
}

struct Result {
  double loss;
  std::vector<float> gradient;
  bool operator==(const Result&) const = default;
};

// Forward and backward of the sequences, `at_once` of them per micro-batch, with the activations of `interval` layers
// at a time (0: of all).
inline Result run(const Model& model, const Data& data, size_t at_once = kSequences, float scale = 1.0f,
                  size_t interval = 0) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(), {.sequences = kSequences, .backward = true, .interval = interval});
  double loss = 0;
  for (size_t s = 0; s < kSequences; s += at_once) {
    MicroBatch batch = data.batch(s, std::min(at_once, kSequences - s));
    batch.turn = {.number = static_cast<uint32_t>(s / at_once), .first = s == 0, .last = s + at_once >= kSequences};
    loss += model.forward_backward(batch, {.scale = scale, .gradient = gradient}, work);
  }
  gradient.join_all();
  return {loss, {gradient.values().begin(), gradient.values().end()}};
}

// The same in one micro-batch by a team. The loss is that of its leader.
inline Result run_in_team(const Model& model, const Data& data, size_t members, size_t interval = 0) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(),
                 {.sequences = kSequences, .backward = true, .members = members, .interval = interval});
  Team team(members);
  double loss = 0;
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < members; ++i) {
    threads.emplace_back([&, i] {
      const Member member{.team = &team, .index = i, .size = members};
      const double sum = model.forward_backward(data.batch(), {.scale = 1.0f, .gradient = gradient}, work, member);
      if (member.leads()) loss = sum;
    });
  }
  threads.clear();
  gradient.join_all();
  return {loss, {gradient.values().begin(), gradient.values().end()}};
}

// Every trained tensor, its first and last elements and some between, on every target, against central differences of
// the double-precision twin.
inline void expect_gradient_of_twin(const Model& model, const ModelConfig& config, const Data& data) {
  std::vector<double> parameters(model.weights().values().begin(), model.weights().values().end());
  const twin::GptTwin reference(config, parameters, config.dropout);
  struct Slope {
    const Parameter* tensor;
    size_t index;
    double value;
  };
  std::vector<Slope> slopes;
  for (const Parameter& tensor : model.parameters().all()) {
    const size_t stride = std::max<size_t>(1, tensor.size / 12);
    for (size_t e = 0; tensor.trainable && e < tensor.size; e += stride) {
      const size_t i = tensor.offset + (e + stride > tensor.size ? tensor.size - 1 : e);
      slopes.push_back({&tensor, i, test::derivative([&] { return reference.loss(data.batch()); }, parameters[i])});
    }
  }
  test::for_each_target([&](const kernels::Target&) {
    const Result found = run(model, data);
    EXPECT_NEAR(found.loss, reference.loss(data.batch()), 1e-3);
    for (const auto& [tensor, i, slope] : slopes) {
      ASSERT_NEAR(found.gradient[i], slope, 2e-4 * std::max(1.0, std::abs(slope)))
          << tensor->name << ", element " << i - tensor->offset;
    }
  });
}

}  // namespace quern::nn
