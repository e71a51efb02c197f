// Many games of self-play at once, whose positions are evaluated in batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "selfplay/evaluation_batch.h"
#include "selfplay/evaluation_cache.h"
#include "selfplay/game_player.h"
#include "selfplay/model.h"

namespace quern::selfplay {

struct BatchSettings {
  size_t games = 128;  // at once: the size of a batch
  // Evaluations to remember; 0 for none, and then equal positions of a batch are evaluated one by one, too. Results do
  // not depend on it.
  size_t cache_positions = size_t{1} << 17;
};

// Error that names the first setting that is out of its range.
void check(const BatchSettings& settings);

struct BatchCounters {
  uint64_t leaves = 0;       // positions that searches needed evaluated
  uint64_t cached = 0;       // of these: found in the cache
  uint64_t evaluations = 0;  // by evaluators; the rest were duplicates within a batch
  uint64_t batches = 0;
};

// A game's record does not depend on the other games, on how many there are, or on the cache. One thread.
class GameBatch {
 public:
  // The game must outlive the batch. Error for bad settings.
  GameBatch(const games::Game& game, const PlaySettings& settings, const BatchSettings& batch);

  // About how many bytes a batch takes, with games of usual length. The memory of a game grows to that of its longest.
  static size_t planned_bytes(const games::GameSpec& spec, const PlaySettings& settings, const BatchSettings& batch);

  size_t playing() const noexcept { return games_.size() - free_.size(); }
  bool has_room() const noexcept { return !free_.empty(); }

  // Starts a game, if there is room, with these weights: one version means the same weights in every call.
  void start(uint64_t seed, uint64_t number, uint64_t version, const std::shared_ptr<const Model>& model);

  // Advances every game to the next position that must be evaluated, and evaluates these positions: one batch for each
  // version of the weights. Calls finished(record) for each game that ends; it may swap the record with another.
  void play_round(const std::function<void(GameRecord&)>& finished);

  const BatchCounters& counters() const noexcept { return counters_; }

 private:
  // The games with one version of the weights.
  struct Group {
    Group(const games::GameSpec& spec, size_t games) : batch(spec, games) {}

    uint64_t version = 0;
    size_t games = 0;  // being played
    std::shared_ptr<const Model> model;
    std::unique_ptr<Evaluator> evaluator;  // goes before its model
    EvaluationBatch batch;
    struct Waiting {
      size_t place;
      size_t index;  // in the batch
      uint64_t key;
    };
    std::vector<Waiting> waiting;
  };
  struct Place {
    std::unique_ptr<GamePlayer> player;
    Group* group = nullptr;  // null: no game
  };

  Group& group_of(uint64_t version, const std::shared_ptr<const Model>& model);
  bool wait_for_evaluation(size_t place);
  void evaluate(Group& group);

  const games::Game& game_;
  std::vector<Place> games_;
  std::vector<size_t> free_;
  std::vector<std::unique_ptr<Group>> groups_;
  EvaluationCache cache_;
  std::vector<float> priors_;
  BatchCounters counters_;
};

}  // namespace quern::selfplay
