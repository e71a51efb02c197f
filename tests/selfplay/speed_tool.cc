// Measures self-play without a network: Connect Four with an evaluator that costs nothing.
//
//   selfplay_speed [SIMULATIONS [GAMES_AT_ONCE [CACHE_POSITIONS [GAMES]]]]
#include <cstdio>
#include <cstdlib>

#include "core/clock.h"
#include "replay/buffer.h"
#include "selfplay/game_batch.h"
#include "selfplay/rows.h"
#include "toy_games.h"

namespace quern::selfplay::test {
namespace {

// Logits that differ from position to position, so that games do.
class NullEvaluator : public Evaluator {
 public:
  void evaluate(size_t count, const float*, float* logits, float* outcomes) override {
    for (size_t i = 0; i < 7 * count; ++i) {
      state_ = state_ * 6364136223846793005 + 1442695040888963407;
      logits[i] = static_cast<float>(state_ >> 40) * 0x1p-23f;
    }
    for (size_t i = 0; i < 3 * count; ++i) outcomes[i] = 1.0f / 3;
  }

 private:
  uint64_t state_ = 1;
};

class NullModel : public Model {
 public:
  std::unique_ptr<Evaluator> make_evaluator(size_t) const override { return std::make_unique<NullEvaluator>(); }
};

void measure(uint32_t simulations, size_t at_once, size_t cache, uint64_t games) {
  const Four game;
  const auto model = std::make_shared<NullModel>();
  replay::ReplayBuffer buffer = replay::ReplayBuffer::create(row_schema(game.spec()), {.capacity = 50000});
  GameBatch batch(game, {.simulations = simulations, .full_share = 1}, {.games = at_once, .cache_positions = cache});
  uint64_t all = 0, next = 0;
  const double start = cpu_seconds();
  do {
    while (next < games && batch.has_room()) batch.start(1, next++, 0, model);
    batch.play_round([&](GameRecord& record) {
      all += record.simulations;
      add_rows(buffer, record);
    });
  } while (batch.playing() > 0 || next < games);
  const double seconds = cpu_seconds() - start;
  std::printf("%u simulations, %zu games at once, cache %zu: %.2f us a simulation, %.2f us an evaluation (%llu rows)\n",
              simulations, at_once, cache, 1e6 * seconds / static_cast<double>(all),
              1e6 * seconds / static_cast<double>(batch.counters().evaluations),
              static_cast<unsigned long long>(buffer.total_added()));
}

}  // namespace
}  // namespace quern::selfplay::test

int main(int argc, char** argv) {
  const auto argument = [&](int index, const char* fallback) {
    return std::strtoull(argc > index ? argv[index] : fallback, nullptr, 10);
  };
  quern::selfplay::test::measure(static_cast<uint32_t>(argument(1, "100")), argument(2, "256"), argument(3, "131072"),
                                 argument(4, "1000"));
}
