// Games in batches are the games played alone, whatever the batch and the cache.
#include "selfplay/game_batch.h"

#include <map>

#include "core/error.h"
#include "searching.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

const Four kGame;
const PlaySettings kSettings = {.simulations = 40, .cheap_simulations = 8, .full_share = 0.4f};
constexpr uint64_t kGames = 30;

std::map<uint64_t, GameRecord> play_batch(size_t at_once, size_t cache, BatchCounters* counters = nullptr) {
  const auto first = std::make_shared<HashedModel>(kGame, 1), second = std::make_shared<HashedModel>(kGame, 2);
  GameBatch batch(kGame, kSettings, {.games = at_once, .cache_positions = cache});
  std::map<uint64_t, GameRecord> records;
  for (uint64_t next = 0; next < kGames || batch.playing() > 0;) {
    for (; next < kGames && batch.has_room(); ++next) {
      const uint64_t version = next * 2 / kGames;  // a boundary of versions in the middle
      batch.start(11, next, version, version == 0 ? first : second);
    }
    batch.play_round([&](GameRecord& record) { records.emplace(record.number, record); });
  }
  if (counters != nullptr) *counters = batch.counters();
  EXPECT_EQ(batch.counters().evaluations, first->evaluations + second->evaluations);
  return records;
}

std::map<uint64_t, GameRecord> play_all_alone() {
  std::map<uint64_t, GameRecord> records;
  for (uint64_t number = 0; number < kGames; ++number) {
    const uint64_t version = number * 2 / kGames;
    records.emplace(number, play_alone(kGame, kSettings, HashedModel(kGame, version + 1), 11, number, version));
  }
  return records;
}

TEST(GameBatch, GamesDoNotDependOnTheBatchOrTheCache) {
  const std::map<uint64_t, GameRecord> alone = play_all_alone();
  ASSERT_EQ(alone.size(), kGames);
  for (const size_t at_once : {1u, 2u, 7u, 64u}) {
    for (const size_t cache : {0u, 8u, 100u, 100000u}) {
      EXPECT_EQ(play_batch(at_once, cache), alone) << at_once << " games, cache of " << cache;
    }
  }
}

TEST(GameBatch, TheCacheAndDuplicatesSaveEvaluations) {
  BatchCounters without, with;
  play_batch(16, 0, &without);
  play_batch(16, 1 << 16, &with);
  EXPECT_EQ(without.cached, 0u);
  EXPECT_EQ(without.evaluations, without.leaves);
  EXPECT_EQ(with.leaves, without.leaves);
  EXPECT_LT(with.evaluations, without.evaluations * 9 / 10);
  EXPECT_GT(with.cached, 0u);
  EXPECT_LT(with.evaluations + with.cached, with.leaves);  // the rest were duplicates: the first round is all of them
}

TEST(GameBatch, KeepsAnEvaluatorForTheNextGame) {
  class CountingModel : public UniformModel {
   public:
    using UniformModel::UniformModel;
    std::unique_ptr<Evaluator> make_evaluator(size_t positions) const override {
      ++made;
      return UniformModel::make_evaluator(positions);
    }
    mutable int made = 0;
  };
  const auto model = std::make_shared<CountingModel>(kGame);
  GameBatch batch(kGame, {.simulations = 2, .cheap_simulations = 2}, {.games = 1});
  for (uint64_t number = 0; number < 5; ++number) {
    batch.start(1, number, 0, model);
    while (batch.playing() > 0) batch.play_round([](GameRecord&) {});
  }
  EXPECT_EQ(model->made, 1);
  EXPECT_EQ(model.use_count(), 2);
  batch.start(1, 5, 1, std::make_shared<UniformModel>(kGame));
  EXPECT_EQ(model.use_count(), 1);  // a new version: the old weights are freed
}

TEST(GameBatch, BadSettingsAreAnError) {
  EXPECT_THROW(GameBatch(kGame, kSettings, {.games = 0}), Error);
  EXPECT_THROW(GameBatch(kGame, {.simulations = 0}, {.games = 1}), Error);
}

TEST(EvaluationCache, FindsWhatWasPutUntilItIsOverwritten) {
  EvaluationCache cache(64, 7);
  const std::vector<float> priors = {0.5f, 0.25f, 0.25f};
  CachedEvaluation found;
  const uint64_t key = EvaluationCache::key(123, 0);
  EXPECT_FALSE(cache.find(key, 3, found));
  cache.put(key, priors, {0.1f, 0.2f, 0.7f});
  ASSERT_TRUE(cache.find(key, 3, found));
  EXPECT_EQ(std::vector<float>(found.priors.begin(), found.priors.end()), priors);
  EXPECT_EQ(found.value, (Wdl{0.1f, 0.2f, 0.7f}));
  EXPECT_FALSE(cache.find(key, 4, found));                           // another number of legal moves
  EXPECT_FALSE(cache.find(EvaluationCache::key(123, 1), 3, found));  // other weights
}

// Positions are put under keys that say what their priors must be; what is found is always right, for as long as the
// ring goes round.
TEST(EvaluationCache, NeverReturnsOverwrittenPriors) {
  EvaluationCache cache(256, 2);  // a ring of 8192 floats
  size_t hits = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    const size_t moves = 1 + i % 50;
    const std::vector<float> priors(moves, static_cast<float>(i));
    cache.put(EvaluationCache::key(i, 0), priors, {static_cast<float>(i), 0, 0});
    const uint64_t earlier = i - std::min<uint64_t>(i, mix(i) % 600);
    CachedEvaluation found;
    if (!cache.find(EvaluationCache::key(earlier, 0), 1 + earlier % 50, found)) continue;
    ++hits;
    ASSERT_EQ(found.value.win, static_cast<float>(earlier));
    for (const float prior : found.priors) ASSERT_EQ(prior, static_cast<float>(earlier));
  }
  EXPECT_GT(hits, 20000u);
  EXPECT_LT(hits, 190000u);
  EXPECT_LT(cache.bytes(), 100000u);
}

TEST(EvaluationBatch, EqualKeysAreOnePosition) {
  EvaluationBatch batch(kGame.spec(), 100);
  const std::unique_ptr<games::Position> start = kGame.start(), other = kGame.parse_position("3");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(batch.add(*start, start->hash()), 0u);
    EXPECT_EQ(batch.add(*other, other->hash()), 1u);
    EXPECT_EQ(batch.add(*start, start->hash()), 0u);
    EXPECT_EQ(batch.add(*start, std::nullopt), 2u);
    for (uint64_t key = 0; key < 97; ++key) EXPECT_EQ(batch.add(*start, key << 40), 3 + key);
    for (uint64_t key = 0; key < 97; ++key) EXPECT_EQ(batch.add(*start, key << 40), 3 + key);
    EXPECT_EQ(batch.size(), 100u);
    batch.clear();
  }
}

}  // namespace
}  // namespace quern::selfplay::test
