// A part of a run of self-play with the same settings: games, steps, ratings and checkpoints, until its last step.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/state.h"
#include "config/config.h"
#include "diagnose/health.h"
#include "games/game.h"
#include "learn/async_actors.h"
#include "learn/checkpoints.h"
#include "learn/learner.h"
#include "learn/own_rows.h"
#include "learn/read_ahead.h"
#include "replay/buffer.h"
#include "run/observer.h"

namespace quern::learn {

// What does not change during a run. All of it must outlive the session.
struct RunContext {
  const std::filesystem::path& folder;
  const games::GameShape& shape;
  const games::Game* game;  // of that shape; null with `own`
  const OwnRows* own;       // the run trains on these, and plays no games; null: it plays
  train::Observer& observer;
  const std::atomic<bool>& stop;
  const std::vector<std::string>& actor_command;  // starts an actor process, before its own arguments; may be empty
};

// Of the game and the learner:
//
//   synchronous      for each generation of games: wait until it is in the buffer, train, save, publish the weights
//   asynchronous     train as fast as the rate limit of the buffer admits, publish every few steps; also on rows of the
//                    caller's actors
//
// A run continues from a checkpoint as if it had not been interrupted if it is synchronous: a checkpoint is written
// when the rows of a generation are in the buffer, all of its steps or some of them are done, and no newer weights were
// published. Games that were in progress are played again.
class Session {
 public:
  // `config` is in force until `last_step`. Continues from `saved`, or begins with initial weights.
  Session(const RunContext& run, const train::RunConfig& config, uint64_t last_step,
          const checkpoint::Checkpoint* saved);
  ~Session();

  // Until the last step, or until the run is asked to stop; then everything is saved.
  void play();

  const RunState& state() const { return state_; }
  train::RunStart start_report(uint64_t steps);
  void set_profile(Profile* profile) { learner_.trainer().set_profile(profile); }
  uint64_t planned_bytes() const { return learner_.plan().memory.total(); }  // the replay buffer included

 private:
  struct Stopped {};  // thrown to end a wait

  bool stopped() const { return run_.stop.load(std::memory_order_relaxed); }
  bool synchronous() const { return config_.selfplay.synchronous; }
  bool finished() const { return state_.step >= last_step_; }
  uint64_t generation() const { return state_.step / config_.selfplay.generation_steps; }
  uint64_t version() const { return progress_.versions.back().version; }

  void play_synchronous();
  void play_asynchronous();
  void await_rows(const std::function<void()>& look);
  bool train_generation();
  void publish_version();
  void end_generation();

  void train_step();
  void handle_trouble(const train::StepReport& report);
  void report_health();
  void report(bool complete);
  void report_now_and_then();
  void rate();
  void save();
  Totals totals() const;

  const RunContext& run_;
  const train::RunConfig config_;
  const uint64_t last_step_;
  RunState state_;
  Progress progress_;                         // its totals are those before this session
  std::optional<replay::ReplayBuffer> made_;  // unless the rows are the caller's
  replay::ReplayBuffer& buffer_;
  std::unique_ptr<AsyncActors> actors_;
  ReadAhead ahead_;  // asynchronous
  Learner learner_;
  train::Health health_;
  train::HealthWarnings health_warnings_;
  std::optional<uint64_t> saved_step_;

  std::function<Totals()> played_;  // by the actors of this session; empty without any
  double started_ = 0, reported_ = 0;
  uint64_t first_step_ = 0;
  Totals before_;  // at the last complete generation
};

}  // namespace quern::learn
