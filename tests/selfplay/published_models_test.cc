// Weights that threads take while others are published, and games that are committed while others end.
#include "selfplay/published_models.h"

#include <random>
#include <thread>

#include "core/measuring.h"
#include "fake_models.h"
#include "selfplay/game_committer.h"
#include "support/support.h"
#include "support/watchdog.h"

namespace quern::selfplay::test {
namespace {

using quern::test::Watchdog;

// Knows its version, and how many of them there are.
class NumberedModel : public Model {
 public:
  explicit NumberedModel(uint64_t its_version) : version(its_version) { ++alive; }
  ~NumberedModel() override { --alive; }
  std::unique_ptr<Evaluator> make_evaluator(size_t) const override { return nullptr; }

  static inline std::atomic<int> alive{0};
  uint64_t version;
};

uint64_t version_in(const VersionedModel& found) { return dynamic_cast<const NumberedModel&>(*found.model).version; }

TEST(PublishedModels, KeepsTheNewestVersions) {
  {
    PublishedModels models(2);
    EXPECT_EQ(models.newest().model, nullptr);
    EXPECT_EQ(models.end(), 0u);
    for (uint64_t version = 5; version < 20; ++version) {
      models.publish(version, std::make_shared<NumberedModel>(version));
      EXPECT_EQ(models.end(), version + 1);
      EXPECT_EQ(version_in(models.newest()), version);
      EXPECT_EQ(models.find(version + 1).model, nullptr);
      EXPECT_EQ(version_in(models.find(std::max<uint64_t>(version - 1, 5))), std::max<uint64_t>(version - 1, 5));
      EXPECT_LE(NumberedModel::alive, 3);
    }
    EXPECT_EQ(models.find(3).model, nullptr);
  }
  EXPECT_EQ(NumberedModel::alive, 0);
}

TEST(PublishedModels, ReadersAlwaysGetAWholeVersionAndNeverAnOlderOne) {
  const Watchdog watchdog("ReadersAlwaysGetAWholeVersionAndNeverAnOlderOne");
  {
    PublishedModels models(1);
    models.publish(0, std::make_shared<NumberedModel>(0));
    constexpr uint64_t kVersions = 20000;
    run_on_threads(4, [&](size_t thread) {
      if (thread == 0) {
        for (uint64_t v = 1; v <= kVersions; ++v) models.publish(v, std::make_shared<NumberedModel>(v));
        return;
      }
      for (uint64_t last = 0; last < kVersions;) {
        const VersionedModel found = models.newest();
        ASSERT_EQ(version_in(found), found.version);
        ASSERT_GE(found.version, last);
        last = found.version;
      }
    });
  }
  EXPECT_EQ(NumberedModel::alive, 0);
}

TEST(GameCommitter, CommitsInOrderWhatThreadsFinishInAnyOrder) {
  const Watchdog watchdog("CommitsInOrderWhatThreadsFinishInAnyOrder");
  constexpr uint64_t kFirst = 1000, kGames = 20000;
  for (const size_t window : {1u, 3u, 64u}) {
    std::vector<uint64_t> committed;
    GameCommitter committer(kFirst, window, [&](const GameRecord& record) {
      ASSERT_EQ(record.moves.size(), 1u);
      ASSERT_EQ(record.moves[0], static_cast<Action>(record.number));
      committed.push_back(record.number);
    });
    std::atomic<uint64_t> next{kFirst};
    run_on_threads(4, [&](size_t thread) {
      std::mt19937_64 random(thread);
      std::vector<GameRecord> mine;  // in progress; they end in a random order
      const auto finish_one = [&] {
        const size_t i = random() % mine.size();
        committer.finish(mine[i]);
        mine.erase(mine.begin() + static_cast<ptrdiff_t>(i));
      };
      for (;;) {
        const uint64_t number = next.fetch_add(1);
        if (number >= kFirst + kGames) break;
        if (number % 100 == 0) committer.permit(number + 150);
        while (!committer.may_start(number)) mine.empty() ? std::this_thread::yield() : finish_one();
        GameRecord record;
        record.number = number;
        record.moves = {static_cast<Action>(number)};
        mine.push_back(record);
        while (mine.size() > 4) finish_one();
      }
      while (!mine.empty()) finish_one();
    });
    committer.permit(kFirst + kGames);
    ASSERT_EQ(committed.size(), kGames);
    for (uint64_t i = 0; i < kGames; ++i) ASSERT_EQ(committed[i], kFirst + i);
    EXPECT_EQ(committer.committed(), kFirst + kGames);
  }
}

TEST(GameCommitter, WaitsForPermission) {
  uint64_t commits = 0;
  GameCommitter committer(0, 10, [&](const GameRecord&) { ++commits; });
  for (const uint64_t number : {0, 1, 2}) {
    GameRecord record;
    record.number = number;
    committer.finish(record);
  }
  EXPECT_EQ(commits, 0u);
  committer.permit(2);
  EXPECT_EQ(commits, 2u);
  committer.permit(1);
  EXPECT_EQ(commits, 2u);
  EXPECT_TRUE(committer.may_start(11));
  EXPECT_FALSE(committer.may_start(12));
  committer.permit(3);
  EXPECT_EQ(commits, 3u);
}

}  // namespace
}  // namespace quern::selfplay::test
