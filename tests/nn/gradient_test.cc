#include "nn/gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "kernels/embedding.h"
#include "nn/models/language_model.h"
#include "support/support.h"
#include "support/watchdog.h"

namespace quern::nn {
namespace {

// Several segments in the token table.
ModelConfig config() { return {.layers = 1, .heads = 1, .width = 64, .context = 10, .vocabulary = 2100}; }

// The order in which GPT-2 declares its tables.
constexpr ParameterId kTokens{0}, kPositions{1};

void add_inputs(Gradient& gradient, const int32_t* tokens, const float* dx, size_t T, const Turn& turn) {
  for (const ParameterId table : {kTokens, kPositions}) gradient.enter_rows(table, turn, {});
  gradient.touch(kTokens, {tokens, T});
  kernels::embedding_backward(tokens, dx, gradient.rows(kTokens, turn), gradient.rows(kPositions, turn), T,
                              config().width);
  for (const ParameterId table : {kTokens, kPositions}) gradient.leave_rows(table, turn);
}

Turn turn_of(uint32_t number, uint32_t per_step) {
  return {.number = number, .first = number % per_step == 0, .last = (number + 1) % per_step == 0};
}

// A digit to every segment: the sum tells the order in which they came.
void add_digit(Gradient& gradient, const ParameterTable& layout, const Turn& turn, float digit) {
  for (size_t s = 0; s < layout.segments().size(); ++s) {
    float& value = gradient.values()[layout.segments()[s].offset];
    gradient.enter(s, turn, {});
    value = turn.first ? digit : 10 * value + digit;
    gradient.leave(s, turn);
  }
}

TEST(Gradient, TurnsAreTakenInOrderWhoeverComesFirst) {
  const test::Watchdog watchdog("turns");
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  for (unsigned seed = 0; seed < 10; ++seed) {
    Gradient gradient(layout);
    std::vector<uint32_t> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::vector<std::jthread> threads;
    for (const uint32_t number : order) {  // two steps of five turns
      threads.emplace_back(
          [&, number] { add_digit(gradient, layout, turn_of(number, 5), static_cast<float>(number % 5 + 1)); });
      if (seed % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // they arrive and sleep
    }
    threads.clear();
    for (const Segment& segment : layout.segments()) ASSERT_EQ(gradient.values()[segment.offset], 12345.0f);
  }
}

TEST(Gradient, TurnsWrapAround) {
  const test::Watchdog watchdog("wrap");
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  Gradient gradient(layout);
  // Only whoever holds the ticket may say what comes next.
  for (size_t s = 0; s < layout.segments().size(); ++s) gradient.leave(s, {.number = UINT32_MAX - 2, .last = false});
  for (const uint32_t number : {UINT32_MAX - 1, UINT32_MAX, 0u, 1u}) {
    add_digit(gradient, layout, {.number = number, .first = number == UINT32_MAX - 1, .last = number == 1}, 1);
  }
  for (const Segment& segment : layout.segments()) ASSERT_EQ(gradient.values()[segment.offset], 1111.0f);
}

TEST(Gradient, AWaitIsMeasured) {
  const test::Watchdog watchdog("measured");
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  WaitClock waits;
  while (waits.tickets.sum() < 0.005) {  // a thread that is started late has not waited
    Gradient gradient(layout);
    std::jthread second([&] { gradient.enter(3, turn_of(1, 2), {.waits = &waits}); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gradient.leave(3, turn_of(0, 2));
  }
  EXPECT_EQ(waits.team.sum(), 0);
}

// Fills every value that is not of the tables, and the output's part of the token table, in one turn.
void fill(Gradient& gradient, const ParameterTable& layout, std::span<const float> values, const Turn& turn) {
  for (size_t s = 0; s < layout.segments().size(); ++s) {
    const Segment& segment = layout.segments()[s];
    gradient.enter(s, turn, {});
    if (segment.parameter != kPositions) {
      std::copy_n(values.begin() + static_cast<ptrdiff_t>(segment.offset), segment.size,
                  gradient.values().begin() + static_cast<ptrdiff_t>(segment.offset));
    }
    gradient.leave(s, turn);
  }
}

// Twice over: nothing of the first step is left in the second.
TEST(Gradient, JoinAddsTheRowsOfTheInputsToThoseOfTheOutput) {
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  Gradient gradient(layout);
  EXPECT_EQ(gradient.joins(), layout.all()[0].segments + layout.all()[1].segments);
  EXPECT_GT(layout.all()[0].segments, 1u);
  const size_t C = config().width;
  for (uint32_t step = 0; step < 2; ++step) {
    const std::vector<float> output = test::normal(layout.size(), 10 + step), dx = test::normal(2 * 4 * C, 20 + step);
    const std::vector<int32_t> tokens = step == 0 ? std::vector<int32_t>{5, 2099, 5, 1030, 0, 5, 7, 7}
                                                  : std::vector<int32_t>{6, 2099, 6, 1024, 1, 6, 8, 8};
    std::vector<float> expected = output, inputs(layout.all()[0].size, 0.0f);
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(layout[kPositions].offset), layout.all()[1].size, 0.0f);
    for (size_t row = 0; row < tokens.size(); ++row) {
      for (size_t c = 0; c < C; ++c) {
        inputs[static_cast<size_t>(tokens[row]) * C + c] += dx[row * C + c];
        expected[layout[kPositions].offset + row % 4 * C + c] += dx[row * C + c];
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) expected[layout[kTokens].offset + i] += inputs[i];

    const Turn turn{.number = step};
    fill(gradient, layout, output, turn);
    for (uint32_t s = 0; s < 2; ++s) {
      const Turn part{.number = 2 * step + s, .first = s == 0, .last = s == 1};
      add_inputs(gradient, tokens.data() + s * 4, dx.data() + s * 4 * C, 4, part);
    }
    gradient.join_all();
    double squares = 0;
    for (const Parameter& tensor : layout.all()) {
      const auto values = std::span(expected).subspan(tensor.offset, tensor.size);
      EXPECT_TRUE(test::same_bits(values, gradient.values().subspan(tensor.offset, tensor.size))) << tensor.name;
      for (const float x : values) squares += static_cast<double>(x) * x;
    }
    EXPECT_NEAR(gradient.squared_norm(), squares, 1e-5 * squares);
  }
}

TEST(Gradient, JoinedByManyThreadsHasTheBitsOfOne) {
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  const std::vector<float> output = test::normal(layout.size(), 1), dx = test::normal(10 * 64, 2);
  const std::vector<int32_t> tokens = {3, 2000, 1500, 1023, 1024, 1025, 0, 2099, 3, 3};
  std::vector<std::vector<float>> results;
  std::vector<double> norms;
  for (const bool parallel : {false, true}) {
    Gradient gradient(layout);
    fill(gradient, layout, output, {});
    add_inputs(gradient, tokens.data(), dx.data(), 10, {});
    if (!parallel) gradient.join_all();
    std::vector<std::jthread> threads;
    for (size_t s = 0; parallel && s < gradient.joins(); ++s) threads.emplace_back([&, s] { gradient.join(s); });
    threads.clear();
    results.emplace_back(gradient.values().begin(), gradient.values().end());
    norms.push_back(gradient.squared_norm());
  }
  EXPECT_TRUE(test::same_bits(results[0], results[1]));
  EXPECT_EQ(norms[0], norms[1]);
}

TEST(Gradient, NotFiniteShowsInTheNorm) {
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t segment : {size_t{0}, layout.segments().size() - 1}) {
      Gradient gradient(layout);
      std::vector<float> values(layout.size(), 1.0f);
      values[layout.segments()[segment].offset + 5] = bad;
      fill(gradient, layout, values, {});
      gradient.join_all();
      EXPECT_FALSE(std::isfinite(gradient.squared_norm()));
    }
  }
}

// Before, while and after they wait, whatever the holder of the ticket does meanwhile.
TEST(Gradient, StopEndsEveryWait) {
  const test::Watchdog watchdog("stopped");
  const Declaration model = declare(config());
  const ParameterTable& layout = model.parameters;
  for (const int delay_us : {0, 10, 50, 200, 20'000}) {
    Gradient gradient(layout);
    std::atomic<int> stopped{0};
    std::vector<std::jthread> threads;
    for (uint32_t number = 2; number < 8; ++number) {  // the turn before them is never passed on
      threads.emplace_back([&, number] {
        try {
          number % 2 == 0 ? gradient.enter(4, turn_of(number, 10), {})
                          : gradient.enter_rows(kTokens, turn_of(number, 10), {});
        } catch (const Stopped&) {
          ++stopped;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    std::jthread holder([&] { gradient.leave(4, turn_of(0, 10)); });
    gradient.stop();
    threads.clear();
    EXPECT_EQ(stopped, 6);
    EXPECT_THROW(gradient.enter(5, turn_of(1, 10), {}), Stopped);
  }
}

}  // namespace
}  // namespace quern::nn
