#include "benchmarks/train_run.h"

#include <cstring>
#include <vector>

#include "core/philox.h"
#include "core/process_memory.h"

namespace quern::bench {

using train::RunConfig;

uint64_t vocabulary_of_preset(const std::string& preset) { return preset == "gpt2" ? 50304 : 96; }

std::unique_ptr<data::TokenBuffer> random_tokens(uint64_t vocabulary) {
  constexpr size_t kTokens = 1 << 18;
  std::vector<int32_t> tokens(kTokens);
  const RandomStream stream{.seed = 1, .purpose = Purpose::kSample};
  for (size_t i = 0; i < kTokens; ++i) {
    tokens[i] = static_cast<int32_t>(stream.block(static_cast<uint32_t>(i))[0] % vocabulary);
  }
  auto buffer = std::make_unique<data::TokenBuffer>(static_cast<uint32_t>(vocabulary));
  buffer->append(tokens);
  return buffer;
}

TrainRun::TrainRun(const RunConfig& config, uint64_t vocabulary, const data::TokenBuffer& tokens, size_t teams)
    : batches({&tokens, 0, tokens.size()},
              {.seed = 1,
               .context = static_cast<uint32_t>(config.model.context),
               .sequences_per_step = static_cast<uint32_t>(config.train.batch * config.train.accumulation)}),
      plan(train::make_plan(config, static_cast<uint32_t>(vocabulary), resident_bytes())),
      model(train::model_config(config, static_cast<uint32_t>(vocabulary)), plan.packed) {
  model.initialise(1);
  trainer =
      std::make_unique<train::Trainer>(config, plan, model, batches, state, train::TrainerOptions{.teams = teams});
}

double TrainRun::steps(uint64_t count) {
  const double start = seconds_now();
  for (uint64_t i = 0; i < count; ++i) trainer->step();
  return seconds_now() - start;
}

bool TrainRun::same_weights(const TrainRun& other) const {
  const auto a = model.weights().values(), b = other.model.weights().values();
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace quern::bench
