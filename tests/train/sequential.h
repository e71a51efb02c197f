// What a trainer with any number of threads must give, by a plain loop in one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "data/batch_source.h"
#include "diagnose/health.h"
#include "kernels/vector_ops.h"
#include "nn/models/transformer.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/optimizer_settings.h"
#include "train/trainer.h"

namespace quern::train::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;  // ten times slower: the same with less of it
#else
inline constexpr bool kSanitized = false;
#endif

// Tokens drawn uniformly; the same for the same seed.
class RandomTokens : public data::TokenStream {
 public:
  RandomTokens(size_t size, uint32_t vocabulary, unsigned seed = 1) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < size; ++i) tokens_.push_back(static_cast<int32_t>(random() % vocabulary));
  }
  uint64_t size() const override { return tokens_.size(); }
  void copy(uint64_t position, size_t count, int32_t* out) const override {
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(position), count, out);
  }

 private:
  std::vector<int32_t> tokens_;
};

inline data::TrainingBatches batches_of(const RunConfig& config, const data::TokenStream& stream) {
  return {{&stream, 0, stream.size()},
          {.seed = config.train.seed,
           .context = static_cast<uint32_t>(config.model.context),
           .sequences_per_step = static_cast<uint32_t>(config.train.batch * config.train.accumulation),
           .order = config.data.sampling == Sampling::kEpoch ? data::Order::kEpoch : data::Order::kRandom}};
}

// Everything that training changes, and what it said.
struct Trained {
  std::vector<float> weights;
  std::vector<std::vector<float>> states;  // of the optimizer
  std::vector<double> losses, norms;
  bool operator==(const Trained&) const = default;
};

inline std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

inline std::vector<std::vector<float>> copy_of_states(Optimizer& optimizer) {
  std::vector<std::vector<float>> states;
  for (const OptimizerState& state : optimizer.states()) states.push_back(copy_of(state.values.span()));
  return states;
}
inline void restore_states(const std::vector<std::vector<float>>& states, Optimizer& optimizer) {
  for (size_t i = 0; i < states.size(); ++i) {
    std::copy(states[i].begin(), states[i].end(), optimizer.states()[i].values.data());
  }
}

// The sum of the lanes first ... end - 1, by the tree of nn/lane_tree.h. Overwrites them.
inline std::vector<float>& tree_sum(std::vector<std::vector<float>>& lanes, size_t first, size_t end) {
  if (end - first == 1) return lanes[first];
  size_t half = 1;
  while (2 * half < end - first) half *= 2;
  std::vector<float>&left = tree_sum(lanes, first, first + half), &right = tree_sum(lanes, first + half, end);
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

inline Trained train_sequentially(const RunConfig& config, const data::TrainingBatches& batches, uint32_t vocabulary,
                                  uint32_t steps) {
  nn::Transformer model(model_config(config, vocabulary), false);
  model.initialise(config.train.seed);
  nn::Gradient gradient(model.parameters());  // of one lane
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(model.parameters(), optimizer_options(config));
  const quern::Schedule schedule = schedule_of(config);
  const size_t T = config.model.context, sequences = config.train.batch * config.train.accumulation;
  const size_t micro_batch_size = std::min(nn::sequences_per_micro_batch(T), sequences);
  const double tokens = static_cast<double>(sequences * T);
  nn::Workspace work(model.activations(), {.sequences = micro_batch_size, .backward = true});
  std::vector<int32_t> inputs(micro_batch_size * T), targets(micro_batch_size * T);
  Trained result;
  uint32_t turn = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    double loss = 0;
    std::vector<std::vector<float>> lanes;
    for (size_t lane = 0; lane < config.lanes(); ++lane) {
      const size_t begin = lane * sequences / config.lanes(), end = (lane + 1) * sequences / config.lanes();
      for (size_t first = begin; first < end; first += micro_batch_size) {
        const size_t n = std::min(micro_batch_size, end - first);
        batches.fill(step, static_cast<uint32_t>(first), static_cast<uint32_t>(n), inputs.data(), targets.data());
        model.forward_backward({.columns = {{kTokensColumn, inputs.data()}, {kTargetsColumn, targets.data()}},
                                .sequences = n,
                                .T = T,
                                .seed = config.train.seed,
                                .step = step,
                                .first_sequence = static_cast<uint32_t>(first),
                                .turn = {.number = turn++, .first = first == begin, .last = first + n == end}},
                               {.scale = static_cast<float>(1.0 / tokens), .gradient = gradient}, work);
        for (size_t s = 0; s < n; ++s) {
          const auto losses = work.losses.subspan(s * T, T);
          loss += std::accumulate(losses.begin(), losses.end(), 0.0);
        }
      }
      gradient.join_all();
      lanes.push_back(copy_of(gradient.values()));
    }
    const std::vector<float>& sum = tree_sum(lanes, 0, lanes.size());
    double squares = 0;
    for (const nn::Segment& segment : model.parameters().segments()) {
      squares += kernels::squared_norm(sum.data() + segment.offset, segment.size);
    }
    const UpdateReport report = optimizer->begin(squares, schedule.at(step + 1), step + 1);
    for (size_t unit = 0; report.finite && unit < optimizer->units().size(); ++unit) {
      optimizer->update(unit, 0, model.weights().values(), sum);
    }
    result.losses.push_back(loss / tokens);
    result.norms.push_back(report.gradient_norm);
  }
  result.weights = copy_of(model.weights().values());
  result.states = copy_of_states(*optimizer);
  return result;
}

// A model and its trainer, as a run has them.
struct Engine {
  Engine(const RunConfig& config, const data::BatchSource& batches, uint32_t vocabulary, TrainerOptions options = {})
      : plan(make_plan(config, vocabulary, 0,
                       options.ranks == nullptr ? RankOf{} : RankOf{options.ranks->rank(), options.ranks->size()})),
        model(model_config(config, vocabulary), plan.packed),
        trainer(config, plan, model, batches, state, std::move(options)),
        statistics(model.parameters()) {
    model.initialise(config.train.seed);
  }

  void steps(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      const StepReport report = trainer.step();
      losses.push_back(report.loss);
      norms.push_back(report.gradient_norm);
    }
  }
  Trained result() { return {copy_of(model.weights().values()), copy_of_states(trainer.optimizer()), losses, norms}; }

  // Of the last step; null if it was not measured.
  const HealthReport* health() { return statistics.report(trainer.context()); }

  Plan plan;
  nn::Transformer model;
  RunState state;
  Trainer trainer;
  Health statistics;
  std::vector<double> losses, norms;
};

}  // namespace quern::train::test
