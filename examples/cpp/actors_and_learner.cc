// Actors and a learner on one replay buffer. Usage: actors_and_learner [STEPS]
//
// Each actor is a separate process that plays a slot machine with three arms and adds its rewards to a buffer in shared
// memory. The learner, which is this process, samples the buffer and estimates what each arm pays. The rate limit makes
// both sides wait for each other, so that each row is sampled four times on average, however fast either side is.
#include <quern/replay.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

// Probability that an arm pays 1, which the learner estimates.
constexpr std::array<float, 3> kPays = {0.2f, 0.5f, 0.8f};
constexpr int kActors = 2;
constexpr size_t kBatch = 64;

// Plays until the learner is done: an actor that has waited for the rate limit for a second is no longer needed.
void act(const quern::ReplayStorage& storage, unsigned seed) {
  quern::ReplayBuffer buffer = quern::ReplayBuffer::attach(storage);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> choose(0, 2);
  std::uniform_real_distribution<float> chance;
  try {
    while (true) {
      const int32_t arm = choose(random);
      const float reward = chance(random) < kPays[static_cast<size_t>(arm)] ? 1.0f : 0.0f;
      buffer.add({{"arm", arm}, {"reward", reward}}, {}, 1.0);
    }
  } catch (const quern::TimeoutError&) {
  }
}

pid_t start_actor(const quern::ReplayStorage& storage, unsigned seed) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    act(storage, seed);
  } catch (const std::exception& error) {
    std::cerr << "actor: " << error.what() << "\n";
    _exit(1);
  }
  _exit(0);
}

// Gradient descent on the squared error of one value per arm.
std::array<float, 3> learn(quern::ReplayBuffer& buffer, int steps) {
  std::array<float, 3> values{};
  quern::Sample batch;  // its memory is reused in every step
  for (int step = 0; step < steps; ++step) {
    buffer.sample(kBatch, batch, {.rule = quern::Rule::kRecent, .half_life = 2000, .timeout = 30});
    const std::span<const int32_t> arms = batch.values<int32_t>("arm");
    const std::span<const float> rewards = batch.values<float>("reward");
    for (size_t i = 0; i < batch.rows(); ++i) {
      float& value = values[static_cast<size_t>(arms[i])];
      value += 0.005f * (rewards[i] - value);
    }
  }
  return values;
}

// Shared memory outlives its processes unless it is removed.
struct RemoveAtEnd {
  quern::ReplayStorage storage;
  ~RemoveAtEnd() { quern::ReplayBuffer::remove(storage); }
};

int run(int steps) {
  const quern::ReplayStorage storage{.shared = "quern-example-" + std::to_string(getpid())};
  quern::ReplayBuffer buffer({{"arm", "int32"}, {"reward", "float32"}}, {.capacity = 10'000,
                                                                         .storage = storage,
                                                                         .samples_per_insert = 4,
                                                                         .min_size = 500,
                                                                         .slack = 4.0 * kBatch,
                                                                         .seed = 1});
  const RemoveAtEnd remove{storage};
  std::vector<pid_t> actors;
  for (unsigned i = 0; i < kActors; ++i) actors.push_back(start_actor(storage, i));
  const std::array<float, 3> values = learn(buffer, steps);
  for (const pid_t actor : actors) waitpid(actor, nullptr, 0);

  std::cout << buffer.total_added() << " rows added, " << static_cast<size_t>(steps) * kBatch << " sampled\n";
  bool learned = true;
  for (size_t arm = 0; arm < kPays.size(); ++arm) {
    std::cout << "arm " << arm << ": estimate " << values[arm] << ", true value " << kPays[arm] << "\n";
    learned = learned && std::abs(values[arm] - kPays[arm]) < 0.1f;
  }
  return learned ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::stoi(argv[1]) : 1000);
  } catch (const std::exception& error) {
    std::cerr << "actors_and_learner: " << error.what() << "\n";
    return 1;
  }
}
