// Threads that play games of self-play and add their rows to a replay buffer, while a learner samples it and publishes
// new weights.
//
//   Actors actors(game, buffer, settings, {{0, model}});
//   for (uint64_t generation = 0; actors.await_generation(generation); ++generation) {
//     ...train on the buffer, save...
//     actors.publish(new model);   // version generation + 1
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/signal.h"
#include "selfplay/game_batch.h"
#include "selfplay/game_committer.h"
#include "selfplay/published_models.h"
#include "selfplay/random_words.h"
#include "selfplay/rows.h"

namespace quern::selfplay {

struct ActorSettings {
  PlaySettings play = {};
  BatchSettings batch = {};  // of each thread
  size_t threads = 1;
  uint64_t seed = 1;

  // Synchronous: game g belongs to generation g / games_per_generation, and a generation is played with one version of
  // the weights. The buffer's contents are a function of the settings above except `batch` and `threads`.
  // Otherwise every game takes the newest version when it starts, and is added when it ends.
  bool synchronous = true;
  uint64_t games_per_generation = 1000;
  // Version v was trained on generations below v. Generation i is played with version max(0, i - lag): with a lag of 1
  // it can be played while the learner trains version i, and with 0 it has to wait for it.
  uint64_t lag = 1;

  // The first game, a multiple of games_per_generation if synchronous, and the one after the last.
  uint64_t first_game = 0;
  uint64_t end_game = kMaxGames;

  // How far games may be ahead of the oldest one that is not in the buffer (synchronous): bounds the memory for games
  // that wait. 0: max(1, lag) generations and a batch for each thread, which is what it takes never to wait for it.
  size_t window = 0;
};

struct ActorStats {
  uint64_t games = 0, moves = 0, rows = 0, simulations = 0, resigned = 0;  // of games that ended, without openings
  uint64_t first_player_wins = 0, draws = 0;
  BatchCounters batches = {};
};

// The state of a synchronous run at the moment when generation i is in the buffer and version i + 1 is trained but not
// published: the buffer, which does not change until then; versions i + 1 - lag to i + 1; and the number i + 1. A run
// that starts with these (first_game = (i + 1) * games_per_generation) adds the same rows as one that continued: games
// that were in progress are played again.
class Actors {
 public:
  // Starts the threads. The game and the buffer must outlive it. `models` are consecutive versions. Synchronous: the
  // last is the number of the first generation, and there are as many before it as the lag says and exist; the buffer
  // must not limit the ratio of samples, which would make the order of games and steps depend on time. Error otherwise,
  // for settings out of range, and for a buffer with other rows.
  Actors(const games::Game& game, replay::ReplayBuffer& buffer, const ActorSettings& settings,
         std::span<const VersionedModel> models);
  ~Actors();  // stop(), then waits for the threads
  Actors(const Actors&) = delete;
  Actors& operator=(const Actors&) = delete;

  // Publishes the next version. Synchronous: Error unless all generations below it are in the buffer. The next
  // generation may then be added to the buffer. One thread.
  void publish(std::shared_ptr<const Model> model);

  // Waits until all games of the generation are in the buffer; the buffer does not change from then until publish().
  // False if the threads ended before: all games up to end_game were played, or stop() was called. Rethrows the
  // exception of a thread that failed. Calls `look` about every 50 ms; its exception ends the wait. Synchronous only.
  bool await_generation(uint64_t generation, const std::function<void()>& look = {});

  // Waits until the threads have ended, in the same way.
  void await_end(const std::function<void()>& look = {});

  // Whether a thread has failed; the others then end. Any thread.
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  // If so, waits for the others and rethrows its exception.
  void rethrow_failure();

  // Asks the threads to end: after the evaluation of the current batch. Games in progress are dropped. Any thread.
  void stop() noexcept;

  // Games that ended, or that are in the buffer if synchronous. Any thread.
  ActorStats stats() const noexcept;
  uint64_t committed() const noexcept { return committer_.committed(); }  // synchronous

 private:
  struct Counters {
    std::atomic<uint64_t> games{0}, moves{0}, rows{0}, simulations{0}, resigned{0}, wins{0}, draws{0};
    std::atomic<uint64_t> leaves{0}, cached{0}, evaluations{0}, batches{0};
  };

  void act() noexcept;
  void play(GameBatch& batch);
  bool refill(GameBatch& batch, std::optional<uint64_t>& number);
  VersionedModel model_for(uint64_t number) const;
  void finish(GameRecord& record);
  void count(const GameRecord& record) noexcept;
  void count(const BatchCounters& now, BatchCounters& before) noexcept;
  void fail(std::exception_ptr failure) noexcept;
  bool await(const std::function<bool()>& reached, const std::function<void()>& look);
  bool stopped() const noexcept { return stopping_.load(std::memory_order_relaxed); }

  const games::Game& game_;
  replay::ReplayBuffer& buffer_;
  const ActorSettings settings_;
  PublishedModels models_;
  GameCommitter committer_;
  std::atomic<uint64_t> next_game_;
  std::atomic<bool> stopping_{false};
  Signal progress_;  // a version was published, a game committed, or the threads have to stop
  std::atomic<size_t> running_{0};
  std::atomic<bool> failed_{false};  // set by the thread that may write failure_
  std::exception_ptr failure_;       // read when running_ is 0
  Counters counters_;
  std::vector<std::jthread> threads_;  // last: they use the rest
};

}  // namespace quern::selfplay
