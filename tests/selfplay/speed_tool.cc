// Measures self-play without a network: a game with an evaluator that costs nothing.
//
//   selfplay_speed [SIMULATIONS [GAMES_AT_ONCE [CACHE_POSITIONS [GAMES [GAME]]]]]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/clock.h"
#include "games/game.h"
#include "replay/buffer.h"
#include "selfplay/game_batch.h"
#include "selfplay/rows.h"

namespace quern::selfplay::test {
namespace {

// Logits that differ from position to position, so that games do.
class NullEvaluator : public Evaluator {
 public:
  explicit NullEvaluator(size_t actions) : actions_(actions), table_(actions + kTable) {
    for (float& value : table_) value = static_cast<float>(next() >> 20) * 0x1p-23f;
  }

  void evaluate(size_t count, const float*, float* logits, float* outcomes) override {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(logits + i * actions_, table_.data() + next() % kTable, actions_ * sizeof(float));
    }
    for (size_t i = 0; i < 3 * count; ++i) outcomes[i] = 1.0f / 3;
  }

 private:
  static constexpr size_t kTable = 8191;

  uint64_t next() { return (state_ = state_ * 6364136223846793005 + 1442695040888963407) >> 20; }

  size_t actions_;
  uint64_t state_ = 1;
  std::vector<float> table_;
};

class NullModel : public Model {
 public:
  explicit NullModel(size_t actions) : actions_(actions) {}
  std::unique_ptr<Evaluator> make_evaluator(size_t) const override { return std::make_unique<NullEvaluator>(actions_); }

 private:
  size_t actions_;
};

void measure(const games::Game& game, uint32_t simulations, size_t at_once, size_t cache, uint64_t games) {
  const auto model = std::make_shared<NullModel>(game.spec().actions);
  replay::ReplayBuffer buffer = replay::ReplayBuffer::create(row_schema(game.spec()), {.capacity = 5000});
  GameBatch batch(game, {.simulations = simulations, .full_share = 1}, {.games = at_once, .cache_positions = cache});
  uint64_t all = 0, next = 0;
  GameRecord last;
  const double start = cpu_seconds();
  do {
    while (next < games && batch.has_room()) batch.start(1, next++, 0, model);
    batch.play_round([&](GameRecord& record) {
      all += record.simulations;
      add_rows(buffer, record);
      std::swap(record, last);
    });
  } while (batch.playing() > 0 || next < games);
  const double seconds = cpu_seconds() - start;
  std::printf(
      "%u simulations, %zu games at once, cache %zu: %.2f us a simulation, %.2f us an evaluation (%llu rows, %.1f s)\n",
      simulations, at_once, cache, 1e6 * seconds / static_cast<double>(all),
      1e6 * seconds / static_cast<double>(batch.counters().evaluations),
      static_cast<unsigned long long>(buffer.total_added()), seconds);

  const uint64_t before = buffer.total_added();
  const double added = cpu_seconds();
  while (cpu_seconds() - added < 1) add_rows(buffer, last);
  std::printf("the buffer takes %.0f rows/s of %zu bytes\n",
              static_cast<double>(buffer.total_added() - before) / (cpu_seconds() - added),
              4 * (game.spec().planes * game.spec().squares() + game.spec().actions + 3));
}

}  // namespace
}  // namespace quern::selfplay::test

int main(int argc, char** argv) {
  const auto argument = [&](int index, const char* fallback) {
    return std::strtoull(argc > index ? argv[index] : fallback, nullptr, 10);
  };
  const auto game = quern::games::make_game(argc > 5 ? argv[5] : "connect4");
  quern::selfplay::test::measure(*game, static_cast<uint32_t>(argument(1, "100")), argument(2, "256"),
                                 argument(3, "131072"), argument(4, "1000"));
}
