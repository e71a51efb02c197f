#include "selfplay/game_batch.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "core/error.h"
#include "selfplay/priors.h"

namespace quern::selfplay {
namespace {

// Legal moves of a usual position, to reserve space for: all of a small game's, 40 of the thousands of chess.
size_t usual_moves(const games::GameSpec& spec) { return std::min<size_t>(spec.actions, 40); }

constexpr size_t kMaxBatch = 1 << 16, kMaxCache = size_t{1} << 32;

}  // namespace

void check(const BatchSettings& settings) {
  if (settings.games == 0 || settings.games > kMaxBatch) {
    throw Error("[selfplay] games at once: expected 1 to {}, found {}", kMaxBatch, settings.games);
  }
  if (settings.cache_positions > kMaxCache) {
    throw Error("[selfplay] cache_positions: expected at most {}, found {}", kMaxCache, settings.cache_positions);
  }
}

namespace {

const BatchSettings& checked(const BatchSettings& settings) {
  check(settings);
  return settings;
}

}  // namespace

GameBatch::GameBatch(const games::Game& game, const PlaySettings& settings, const BatchSettings& batch)
    : game_(game),
      games_(checked(batch).games),
      cache_(batch.cache_positions, usual_moves(game.spec())),
      priors_(game.spec().actions) {
  for (Place& place : games_) place.player = std::make_unique<GamePlayer>(game, settings);
  for (size_t i = games_.size(); i-- > 0;) free_.push_back(i);
}

size_t GameBatch::planned_bytes(const games::GameSpec& spec, const PlaySettings& settings, const BatchSettings& batch) {
  const size_t moves = usual_moves(spec);
  const size_t position = sizeof(float) * (spec.planes * spec.squares() + spec.actions + 3);
  // Kept subtrees, two arrays that double when they are full, and the largest of many games: measured with Connect
  // Four.
  const size_t nodes = 5 * std::max(settings.simulations, settings.cheap_simulations);
  const size_t tree = nodes * (sizeof(Node) + moves * sizeof(Edge));
  return EvaluationCache::bytes(batch.cache_positions, moves) +
         batch.games * (position + tree + planned_record_bytes(spec, settings));
}

// An evaluator is kept until a new version needs one: the next game usually has the same weights as the last.
GameBatch::Group& GameBatch::group_of(uint64_t version, const std::shared_ptr<const Model>& model) {
  for (const auto& group : groups_) {
    if (group->model != nullptr && group->version == version) return *group;
  }
  for (const auto& group : groups_) {
    if (group->games == 0) group->evaluator.reset(), group->model.reset();
  }
  auto unused = std::find_if(groups_.begin(), groups_.end(), [](const auto& group) { return group->model == nullptr; });
  if (unused == groups_.end()) {
    unused = groups_.insert(unused, std::make_unique<Group>(game_.spec(), games_.size()));
  }
  Group& group = **unused;
  group.evaluator = model->make_evaluator(games_.size());
  group.version = version;
  group.model = model;
  return group;
}

void GameBatch::start(uint64_t seed, uint64_t number, uint64_t version, const std::shared_ptr<const Model>& model) {
  assert(has_room());
  Group& group = group_of(version, model);
  Place& place = games_[free_.back()];
  place.player->start(seed, number, version);
  place.group = &group;
  ++group.games;
  free_.pop_back();
}

// Plays until the game needs an evaluation that the cache does not have; false if it ends before.
bool GameBatch::wait_for_evaluation(size_t place) {
  GamePlayer& player = *games_[place].player;
  Group& group = *games_[place].group;
  while (const games::Position* leaf = player.next_leaf()) {
    ++counters_.leaves;
    std::optional<uint64_t> key;
    CachedEvaluation found;
    if (cache_.enabled()) key = EvaluationCache::key(leaf->hash(), group.version);
    if (key && cache_.find(*key, player.leaf_actions().size(), found)) {
      ++counters_.cached;
      player.take(found.priors, found.value);
      continue;
    }
    group.waiting.push_back({place, group.batch.add(*leaf, key), key.value_or(0)});
    return true;
  }
  return false;
}

void GameBatch::play_round(const std::function<void(GameRecord&)>& finished) {
  for (size_t place = 0; place < games_.size(); ++place) {
    if (games_[place].group == nullptr || wait_for_evaluation(place)) continue;
    --games_[place].group->games;
    games_[place].group = nullptr;
    free_.push_back(place);
    finished(games_[place].player->record());
  }
  for (const auto& group : groups_) evaluate(*group);
}

void GameBatch::evaluate(Group& group) {
  if (group.waiting.empty()) return;
  group.batch.evaluate(*group.evaluator);
  counters_.evaluations += group.batch.size();
  ++counters_.batches;
  for (const Group::Waiting& waiting : group.waiting) {
    GamePlayer& player = *games_[waiting.place].player;
    const std::span<const games::Action> actions = player.leaf_actions();
    CachedEvaluation found;
    if (cache_.enabled() && cache_.find(waiting.key, actions.size(), found)) {  // the second of two equal positions
      player.take(found.priors, found.value);
      continue;
    }
    const std::span<float> priors(priors_.data(), actions.size());
    write_priors(group.batch.logits(waiting.index), actions, priors);
    const Wdl value = read_outcome(group.batch.outcome(waiting.index));
    if (cache_.enabled()) cache_.put(waiting.key, priors, value);
    player.take(priors, value);
  }
  group.waiting.clear();
  group.batch.clear();
}

}  // namespace quern::selfplay
