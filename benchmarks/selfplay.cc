// Self-play of Connect Four with its preset: the whole loop against the network's own speed, what the replay buffer
// takes against what actors deliver, and the learner against a language model of the same size.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "benchmarks/train_run.h"
#include "benchmarks/workloads.h"
#include "core/clock.h"
#include "core/temporary_folder.h"
#include "games/game.h"
#include "learn/learner.h"
#include "learn/selfplay_run.h"
#include "learn/settings.h"
#include "selfplay/rows.h"

namespace quern::bench {
namespace {

using train::RunConfig;

constexpr double kLoopBar = 0.80;
constexpr double kIngestionBar = 10;
constexpr double kMfuMargin = 0.05;  // below the language model's

RunConfig config_for(const Context& context) {
  RunConfig config = train::selfplay_preset("connect4");
  config.train.threads = context.threads();
  config.selfplay.rating_interval = 0;
  config.checkpoint.interval = 0;
  if (context.quick()) {
    config.selfplay.generation_games = 8;
    config.selfplay.generation_steps = 2;
    config.optimizer.warmup = 1;
    config.selfplay.games_at_once = 8;
  }
  return config;
}

// Positions of random games, with a policy and an outcome as a search would give them.
struct Rows {
  std::vector<float> planes, policies, outcomes;
  size_t count = 0;
};

Rows random_rows(const games::Game& game, size_t count) {
  const games::GameSpec& spec = game.spec();
  Rows rows{.planes = std::vector<float>(count * spec.planes * spec.squares()),
            .policies = std::vector<float>(count * spec.actions, -1.0f),
            .outcomes = std::vector<float>(count * 3),
            .count = count};
  std::unique_ptr<games::Position> position = game.start();
  std::vector<games::Action> legal;
  const RandomStream stream{.seed = 1, .purpose = Purpose::kTestPositions};
  const size_t size = spec.planes * spec.squares();
  for (size_t i = 0; i < count; ++i) {
    if (position->over()) position = game.start();
    position->legal_actions(legal);
    position->write_planes(std::span(rows.planes).subspan(i * size, size));
    for (const games::Action action : legal) {
      rows.policies[i * spec.actions + action] = 1.0f / static_cast<float>(legal.size());
    }
    const auto words = stream.block(static_cast<uint32_t>(i));
    rows.outcomes[3 * i + words[0] % 3] = 1;
    position->play(legal[words[1] % legal.size()]);
  }
  return rows;
}

std::vector<const std::byte*> columns_of(const Rows& rows) {
  const auto bytes = [](const std::vector<float>& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  return {bytes(rows.planes), bytes(rows.policies), bytes(rows.outcomes)};
}

// What every game of a run reports.
struct LoopSpeed : train::Observer {
  void on_selfplay(const train::SelfplayReport& report) override {
    if (!report.complete) return;
    evaluations_per_s.push_back(report.evaluations_per_s);
    rows_per_s.push_back(static_cast<double>(report.rows - rows) / (report.seconds - seconds));
    rows = report.rows, seconds = report.seconds;
  }

  std::vector<double> evaluations_per_s, rows_per_s;  // of the generations
  uint64_t rows = 0;
  double seconds = 0;
};

// The first generation is played before the learner has anything to do, and does not count.
void measure_loop(RunConfig config, uint64_t generations, LoopSpeed& speed) {
  config.train.steps = generations * config.selfplay.generation_steps;
  const TemporaryFolder folder;
  const std::atomic<bool> stop{false};
  learn::start_selfplay(config, folder / "run", speed, {.stop = stop});
  speed.evaluations_per_s.erase(speed.evaluations_per_s.begin());
  speed.rows_per_s.erase(speed.rows_per_s.begin());
}

// Evaluations per second of the network alone, each thread with batches as large as the games of an actor.
class NetworkSpeed {
 public:
  NetworkSpeed(const RunConfig& config, const games::Game& game)
      : rows_(random_rows(game, config.selfplay.games_at_once)),
        actions_(game.spec().actions),
        threads_(config.train.threads) {
    nn::BoardModel model(learn::board_config(config, game.spec()), true);
    model.initialise(1);
    network_ = std::make_unique<learn::Network>(model);
  }

  double measure(double seconds) {
    std::vector<std::jthread> threads;
    std::vector<double> speeds(threads_);
    for (double& speed : speeds) threads.emplace_back([this, seconds, &speed] { speed = measure_one(seconds); });
    threads.clear();
    double sum = 0;
    for (const double speed : speeds) sum += speed;
    return sum;
  }

 private:
  double measure_one(double seconds) const {
    const std::unique_ptr<selfplay::Evaluator> evaluator = network_->make_evaluator(rows_.count);
    std::vector<float> logits(rows_.count * actions_), outcomes(rows_.count * 3);
    evaluator->evaluate(rows_.count, rows_.planes.data(), logits.data(), outcomes.data());
    const double start = seconds_now();
    double taken = 0;
    size_t done = 0;
    do {
      evaluator->evaluate(rows_.count, rows_.planes.data(), logits.data(), outcomes.data());
      done += rows_.count;
      taken = seconds_now() - start;
    } while (taken < seconds);
    return static_cast<double>(done) / taken;
  }

  Rows rows_;
  size_t actions_, threads_;
  std::unique_ptr<learn::Network> network_;
};

double best(const std::vector<double>& values) { return *std::ranges::max_element(values); }

void bench_loop(Context& context, const games::Game& game) {
  const bool loop = context.wants("selfplay/connect4/loop"), ingestion = context.wants("selfplay/connect4/ingestion");
  if (!loop && !ingestion) return;
  const RunConfig config = config_for(context);
  NetworkSpeed network(config, game);
  const double seconds = context.quick() ? 0.05 : 2;
  double alone = network.measure(seconds);
  LoopSpeed speed;
  measure_loop(config, context.quick() ? 2 : 4, speed);
  alone = std::max(alone, network.measure(seconds));
  if (loop) {
    context.add("selfplay/connect4/loop", best(speed.evaluations_per_s), "evaluations/s", "network alone", alone,
                kLoopBar);
  }
  if (!ingestion) return;
  // A game's rows are added together.
  const Rows rows = random_rows(game, 8);
  replay::ReplayBuffer buffer =
      replay::ReplayBuffer::create(selfplay::row_schema(game.spec()), {.capacity = config.selfplay.rows});
  const std::vector<const std::byte*> columns = columns_of(rows);
  constexpr size_t kAdds = 10'000;
  const double time = best_times(context, {[&] {
                                   for (size_t i = 0; i < kAdds; ++i) buffer.add(columns, rows.count);
                                 }})[0];
  context.add("selfplay/connect4/ingestion", static_cast<double>(kAdds * rows.count) / time, "rows/s", "actors",
              best(speed.rows_per_s), kIngestionBar);
}

// A learner with a full buffer.
class LearnerRun {
 public:
  LearnerRun(const RunConfig& config, const games::Game& game)
      : buffer_(replay::ReplayBuffer::create(selfplay::row_schema(game.spec()), {.capacity = 4096})),
        state_{.precision = "fp32"},
        learner_(config, game, buffer_, state_, nullptr) {
    const Rows rows = random_rows(game, 4096);
    buffer_.add(columns_of(rows), rows.count);
    learner_.begin(1);
  }

  double steps(uint64_t count) {
    const double start = seconds_now();
    for (uint64_t i = 0; i < count; ++i) learner_.step();
    return seconds_now() - start;
  }
  double flops_per_token(size_t squares) const { return learner_.model().activations().training_flops(squares, 1); }

 private:
  replay::ReplayBuffer buffer_;
  RunState state_;
  learn::Learner learner_;
};

// The same layers, width, heads, length, batch and optimizer, on tokens.
RunConfig language_config(const RunConfig& config) {
  RunConfig language = config;
  language.selfplay = {};
  train::validate(language);
  return language;
}

void bench_learner(Context& context, const games::Game& game) {
  if (!context.wants("selfplay/connect4/learner")) return;
  constexpr uint64_t kVocabulary = 96;
  const RunConfig config = config_for(context), language = language_config(config);
  LearnerRun learner(config, game);
  const auto tokens = random_tokens(kVocabulary);
  TrainRun peer(language, kVocabulary, *tokens);
  learner.steps(2);
  peer.steps(2);
  const uint64_t steps = context.quick() ? 1 : 20;
  const std::vector<double> times =
      best_times(context, {[&] { learner.steps(steps); }, [&] { peer.steps(steps); }}, 8, 5);
  const double positions = static_cast<double>(steps * config.train.batch * config.model.context);
  const double ours = positions * learner.flops_per_token(config.model.context) / times[0] * 1e-9;
  const double theirs = positions * peer.model.activations().training_flops(config.model.context) / times[1] * 1e-9;
  const double margin = kMfuMargin * context.machine().fma_peak_gflops;
  context.add("selfplay/connect4/learner", ours, "GFLOPS", "language model", theirs, (theirs - margin) / theirs);
  context.add("selfplay/connect4/mfu", ours, "GFLOPS", "FMA peak", context.machine().fma_peak_gflops);
}

}  // namespace

void bench_selfplay(Context& context) {
  const std::unique_ptr<games::Game> game = games::make_game("connect4");
  bench_loop(context, *game);
  bench_learner(context, *game);
}

}  // namespace quern::bench
