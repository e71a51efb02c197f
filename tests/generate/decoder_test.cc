#include "generate/decoder.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "generate/model.h"
#include "support/message.h"
#include "support/model_variants.h"
#include "support/watchdog.h"

namespace quern {
namespace {

using Tokens = std::vector<int32_t>;

class DecoderBits : public ::testing::TestWithParam<std::tuple<nn::Variant, bool>> {
 protected:
  static nn::ModelConfig config(size_t context = 37) {
    return nn::with(std::get<0>(GetParam()), test::small_config(context));
  }
  static bool packed() { return std::get<1>(GetParam()); }
};

TEST_P(DecoderBits, OneTokenAtATimeIsTheWholeForward) {
  test::for_each_target([](const kernels::Target&) {
    nn::Transformer model(config(), packed());
    test::fill(model);
    const size_t V = model.config().vocabulary;
    const Tokens tokens = test::random_tokens(model.config().context, V);
    const std::vector<float> expected = test::whole_logits(model, tokens);
    Decoder decoder(model);
    for (size_t t = 0; t < tokens.size(); ++t) {
      ASSERT_TRUE(test::same_bits(std::span(expected).subspan(t * V, V), decoder.append(tokens[t]))) << "at " << t;
    }
  });
}

TEST_P(DecoderBits, AnyCutOfTheTokensGivesTheSame) {
  test::for_each_target([](const kernels::Target&) {
    nn::Transformer model(config(150), packed());
    test::fill(model);
    const Tokens tokens = test::random_tokens(150, model.config().vocabulary);
    const std::vector<float> expected = test::last_logits(model, tokens);
    for (const size_t piece : {1u, 7u, 63u, 64u, 65u, 149u, 150u}) {
      Decoder decoder(model);
      std::span<const float> found;
      for (size_t t = 0; t < tokens.size(); t += piece) {
        found = decoder.append(std::span(tokens).subspan(t, std::min(piece, tokens.size() - t)));
      }
      EXPECT_TRUE(test::same_bits(expected, found)) << piece << " at once";
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Variants, DecoderBits,
                         ::testing::Combine(::testing::ValuesIn(nn::variants()), ::testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + (std::get<1>(test.param) ? "Packed" : "");
                         });

// Adapters take part in decoding, by teams too, and their dropout does not.
TEST(Decoder, OfAnAdaptedModelIsTheWholeForward) {
  for (const nn::Variant& variant : nn::main_variants()) {
    for (const kernels::DType storage : {kernels::DType::kF32, kernels::DType::kBF16}) {
      nn::ModelConfig config = nn::with(variant, test::small_config());
      config.storage = storage;
      config.adapters = {.rank = 3, .alpha = 5, .dropout = 0.5};
      nn::Transformer model(config, nn::Packing::for_inference());
      test::fill(model);
      const size_t V = config.vocabulary;
      const Tokens tokens = test::random_tokens(config.context, V);
      const std::vector<float> expected = test::whole_logits(model, tokens);
      Decoder singly(model), team(model, {.threads = 3, .share_all = true});
      team.append(std::span(tokens).first(20));
      for (size_t t = 0; t < tokens.size(); ++t) {
        const std::span<const float> right = std::span(expected).subspan(t * V, V);
        ASSERT_TRUE(test::same_bits(right, singly.append(tokens[t]))) << variant.name << " at " << t;
        if (t < 20) continue;
        ASSERT_TRUE(test::same_bits(right, team.append(tokens[t]))) << variant.name << " at " << t;
      }
    }
  }
}

TEST(Decoder, SameOnEveryTargetWithFusedMultiplyAdd) {
  std::vector<std::vector<float>> results;
  test::for_each_target([&](const kernels::Target& target) {
    nn::Transformer model(test::small_config(), true);
    test::fill(model);
    Decoder decoder(model);
    std::span<const float> found;
    for (const int32_t token : test::random_tokens(60, 53)) found = decoder.append(token);
    if (target.fma) results.emplace_back(found.begin(), found.end());
  });
  for (const std::vector<float>& result : results) EXPECT_TRUE(test::same_bits(results.front(), result));
}

// With a context of 8: 9 tokens leave 5 (4 that stay and the new one), as do 13, 17 ...
TEST(Decoder, SlidesToTheLastHalfWhenTheContextIsFull) {
  nn::Transformer model(test::small_config(8), true);
  test::fill(model);
  const Tokens tokens = test::random_tokens(30, model.config().vocabulary);
  Decoder decoder(model);
  for (size_t n = 1; n <= tokens.size(); ++n) {
    const std::span<const float> found = decoder.append(tokens[n - 1]);
    const size_t length = n <= 8 ? n : 5 + (n - 9) % 4;
    const std::span<const int32_t> expected = std::span(tokens).subspan(n - length, length);
    ASSERT_EQ(Tokens(decoder.window().begin(), decoder.window().end()), Tokens(expected.begin(), expected.end()));
    ASSERT_TRUE(test::same_bits(test::last_logits(model, expected), found)) << "after " << n;
  }
}

// Also contexts of 1 and of odd length, and prompts that are many contexts long.
TEST(Decoder, TheWindowDoesNotDependOnHowTheTokensArrived) {
  for (const size_t context : {1u, 2u, 3u, 8u, 13u}) {
    nn::Transformer model(test::small_config(context), true);
    test::fill(model);
    const Tokens tokens = test::random_tokens(70, model.config().vocabulary);
    Decoder singly(model);
    for (size_t n = 1; n <= tokens.size(); ++n) {
      const std::span<const float> expected = singly.append(tokens[n - 1]);
      Decoder at_once(model), in_two(model);
      ASSERT_TRUE(test::same_bits(expected, at_once.append(std::span(tokens).first(n)))) << context << ", " << n;
      in_two.append(std::span(tokens).first((n + 1) / 2));
      if (n == 1) continue;
      ASSERT_TRUE(test::same_bits(expected, in_two.append(std::span(tokens).first(n).subspan((n + 1) / 2)))) << n;
    }
  }
}

// Prompts of several pieces, single tokens, and slides, with more threads than heads or panels of columns.
TEST_P(DecoderBits, AnyNumberOfThreadsGivesTheSame) {
  const test::Watchdog watchdog("decoding by teams");
  nn::Transformer model(config(90), packed());
  test::fill(model);
  const Tokens tokens = test::random_tokens(150, model.config().vocabulary);
  Decoder alone(model);
  std::vector<std::vector<float>> expected;
  for (size_t n = 70; n <= tokens.size(); ++n) {
    const auto logits = alone.append(n == 70 ? std::span(tokens).first(70) : std::span(tokens).subspan(n - 1, 1));
    expected.emplace_back(logits.begin(), logits.end());
  }
  for (const size_t threads : {1u, 2u, 3u, 4u, 8u}) {
    Decoder team(model, {.threads = threads, .share_all = true});
    ASSERT_EQ(team.members_for(1), threads);
    for (size_t n = 70; n <= tokens.size(); ++n) {
      const auto found = team.append(n == 70 ? std::span(tokens).first(70) : std::span(tokens).subspan(n - 1, 1));
      ASSERT_TRUE(test::same_bits(expected[n - 70], found)) << threads << " threads, after " << n;
    }
  }
}

// A team for the prompt, one thread for each token.
TEST(Decoder, ThreadsShareOnlyWhatIsWorthIt) {
  const test::Watchdog watchdog("teams of several sizes");
  const auto members = [](size_t width, size_t rows) {
    const nn::Transformer model({.layers = 1, .heads = 1, .width = width, .context = 1024, .vocabulary = 10}, false);
    return Decoder(model, {.threads = 12}).members_for(rows);
  };
  EXPECT_EQ(members(48, 1), 1u);
  EXPECT_EQ(members(48, 31), 1u);
  EXPECT_EQ(members(48, 32), 2u);
  EXPECT_EQ(members(48, 1000), 8u) << "a prompt goes 128 positions at a time";
  EXPECT_EQ(members(96, 1), 2u);
  EXPECT_EQ(members(256, 1), 5u) << "panels";
  EXPECT_EQ(members(256, 64), 12u) << "threads";

  nn::Transformer model(test::small_config(), true);
  test::fill(model);
  Decoder decoder(model, {.threads = 4});
  ASSERT_EQ(decoder.members_for(1), 1u);
  ASSERT_EQ(decoder.members_for(34), 2u);
  const Tokens tokens = test::random_tokens(36, model.config().vocabulary);
  decoder.append(std::span(tokens).first(34));
  decoder.append(tokens[34]);
  EXPECT_TRUE(test::same_bits(test::last_logits(model, tokens), decoder.append(tokens[35])));
}

TEST(Decoder, WhatAMemberThrowsReachesTheCallerAndTheNextCallGoesOn) {
  const test::Watchdog watchdog("a member that throws");
  nn::Transformer model(test::small_config(), true);
  test::fill(model);
  const Tokens tokens = test::random_tokens(10, model.config().vocabulary);
  for (const size_t threads : {1u, 2u, 5u}) {
    for (const size_t thrower : {size_t{0}, threads - 1}) {
      bool armed = true;
      Decoder decoder(model, {.threads = threads, .share_all = true, .before_pass = [&](const Member& member) {
                                if (member.index == thrower && std::exchange(armed, false)) throw std::bad_alloc();
                              }});
      EXPECT_THROW(decoder.append(std::span(tokens).first(9)), std::bad_alloc);
      EXPECT_TRUE(test::same_bits(test::last_logits(model, tokens), decoder.append(tokens[9])));
    }
  }
}

// Exactly as many positions as were asked for: the last one, and an Error that changes nothing beyond.
TEST(Decoder, CapacityLimitsMemoryAndNotTheResult) {
  nn::Transformer model(test::small_config(400), true);
  test::fill(model);
  const Tokens tokens = test::random_tokens(21, model.config().vocabulary);
  Decoder whole(model), small(model, {.capacity = 20});
  EXPECT_EQ(whole.capacity(), 400u);
  EXPECT_EQ(Decoder(model, {.capacity = 5000}).capacity(), 400u);
  EXPECT_LE(small.planned_bytes() + size_t{380} * 2 * 36 * 3 * sizeof(float), whole.planned_bytes());
  for (size_t t = 0; t < 20; ++t) ASSERT_TRUE(test::same_bits(whole.append(tokens[t]), small.append(tokens[t]))) << t;
  EXPECT_EQ(test::message_of([&] { small.append(tokens[20]); }),
            "[generate] tokens: expected at most 20 in the window, the capacity of the decoder, found 21");
  EXPECT_EQ(small.window().size(), 20u);
  EXPECT_EQ(test::message_of([&] { small.restart(tokens); }),
            "[generate] tokens: expected at most 20 in the window, the capacity of the decoder, found 21");
  EXPECT_TRUE(test::same_bits(test::last_logits(model, std::span(tokens).first(19)),
                              small.restart(std::span(tokens).first(19))));
}

// Trained on sequences of 16, able to address 60: beyond the training length like a model of that context, then slides.
TEST(Decoder, TheWindowReachesToTheMaximumContext) {
  for (const nn::Variant& variant : nn::variants()) {
    nn::ModelConfig config = nn::with(variant, test::small_config(60));
    nn::Transformer wide(config, true);
    config.context = 16;
    config.max_context = 60;
    nn::Transformer model(config, true);
    test::fill(wide);
    test::fill(model);
    EXPECT_EQ(max_positions(model), 60u);
    EXPECT_EQ(positions_for(model, 10, 40), 50u);
    const Tokens tokens = test::random_tokens(75, config.vocabulary);
    Decoder decoder(model), expected(wide), small(model, {.capacity = 50});
    EXPECT_TRUE(test::same_bits(test::last_logits(wide, std::span(tokens).first(50)),
                                decoder.append(std::span(tokens).first(50))))
        << variant.name;
    EXPECT_TRUE(
        test::same_bits(decoder.restart(std::span(tokens).first(50)), small.append(std::span(tokens).first(50))));
    expected.append(std::span(tokens).first(50));
    for (size_t t = 50; t < tokens.size(); ++t) {
      ASSERT_TRUE(test::same_bits(expected.append(tokens[t]), decoder.append(tokens[t]))) << variant.name << ", " << t;
    }
    EXPECT_EQ(decoder.window().size(), 45u);  // 61 tokens left 31
  }
}

TEST(Decoder, TheCacheHasTheHeadsOfKeysOnly) {
  const auto bytes = [](size_t kv_heads, size_t capacity) {
    nn::ModelConfig config = test::small_config(2000);
    config.family = nn::Family::kLlama;
    config.heads = 6;
    config.kv_heads = kv_heads;
    config.head_width = 16;
    const nn::Transformer model(config, false);
    return Decoder(model, {.capacity = capacity}).planned_bytes();
  };
  const size_t all = bytes(6, 1920) - bytes(6, 896), half = bytes(3, 1920) - bytes(3, 896);
  const size_t scores = bytes(1, 1920) - bytes(1, 896) - (all - half) / 3;  // of attention, whatever the heads
  EXPECT_EQ(all - half, size_t{1024} * 2 * 3 * 16 * 3 * sizeof(float));
  EXPECT_LT(scores, all / 6);
}

TEST(Decoder, PositionsForATextAreItsTokensUpToTheLimitOfTheModel) {
  const nn::Transformer model(test::small_config(100), false);
  constexpr size_t kHuge = std::numeric_limits<size_t>::max();
  EXPECT_EQ(max_positions(model), 100u);
  EXPECT_EQ(positions_for(model, 3, 20), 23u);
  EXPECT_EQ(positions_for(model, 3, 97), 100u);
  EXPECT_EQ(positions_for(model, 3, kHuge), 100u);
  EXPECT_EQ(positions_for(model, kHuge, kHuge), 100u);
  EXPECT_EQ(positions_for(model, 0, 0), 1u);
}

// Also of slides, and of a prompt that ends within a block.
TEST_P(DecoderBits, AnyBlockSizeGivesTheSame) {
  nn::Transformer model(config(90), packed());
  test::fill(model);
  const Tokens tokens = test::random_tokens(140, model.config().vocabulary);
  std::vector<float> expected;
  for (const size_t rows : {0u, 1u, 2u, 16u, 33u, 64u, 1000u}) {
    Decoder decoder(model, {.block_rows = rows});
    decoder.append(std::span(tokens).first(77));
    const std::span<const float> found = decoder.append(std::span(tokens).subspan(77));
    if (expected.empty()) expected.assign(found.begin(), found.end());
    EXPECT_TRUE(test::same_bits(expected, found)) << rows << " rows";
  }
}

TEST(Decoder, RestartGivesTheSameAsAppendAndKeepsWhatIsEqual) {
  nn::Transformer model(test::small_config(37), true);
  test::fill(model);
  size_t passes = 0;
  Decoder decoder(model, {.block_rows = 1, .before_pass = [&](const Member&) { ++passes; }});
  const Tokens tokens = test::random_tokens(60, model.config().vocabulary);
  Tokens other = tokens;
  other[10] = (other[10] + 1) % 53;
  const auto computed = [&](std::span<const int32_t> prompt) {
    passes = 0;
    Decoder fresh(model);
    EXPECT_TRUE(test::same_bits(fresh.append(prompt), decoder.restart(prompt)));
    EXPECT_TRUE(std::ranges::equal(fresh.window(), decoder.window()));
    return passes;
  };
  EXPECT_EQ(computed(std::span(tokens).first(20)), 20u);
  EXPECT_EQ(computed(std::span(tokens).first(20)), 1u);
  for (const int32_t token : std::span(tokens).subspan(30, 5)) decoder.append(token);
  EXPECT_EQ(computed(std::span(tokens).first(20)), 1u);
  EXPECT_EQ(computed(std::span(tokens).first(5)), 1u);
  EXPECT_EQ(computed(std::span(tokens).first(30)), 25u);
  EXPECT_EQ(computed(std::span(other).first(30)), 20u);
  for (const int32_t token : std::span(tokens).subspan(30)) decoder.append(token);  // slides
  EXPECT_EQ(computed(std::span(other).first(30)), 30u);
  computed(tokens);  // longer than the window
  EXPECT_EQ(computed(tokens), 1u);
}

TEST(Decoder, TellsHowFarALongPromptIs) {
  nn::Transformer model(test::small_config(37), true);
  test::fill(model);
  std::vector<std::pair<size_t, size_t>> calls;
  bool armed = false;
  const OnBlock on_block = [&](size_t done, size_t total) {
    calls.emplace_back(done, total);
    if (std::exchange(armed, false)) throw std::bad_alloc();
  };
  Decoder decoder(model, {.on_block = on_block, .block_rows = 10});
  const Tokens tokens = test::random_tokens(36, model.config().vocabulary);
  decoder.append(std::span(tokens).first(25));
  EXPECT_EQ(calls, (std::vector<std::pair<size_t, size_t>>{{10, 25}, {20, 25}, {25, 25}}));
  calls.clear();
  decoder.append(std::span(tokens).subspan(25, 10));
  EXPECT_TRUE(calls.empty()) << "one block";
  armed = true;  // an interrupt: the next call computes the rest
  EXPECT_THROW(decoder.restart(std::span(tokens).subspan(1, 34)), std::bad_alloc);
  EXPECT_TRUE(test::same_bits(test::last_logits(model, std::span(tokens).subspan(1)), decoder.append(tokens[35])));
}

TEST(Decoder, ClearStartsAfresh) {
  nn::Transformer model(test::small_config(), true);
  test::fill(model);
  Decoder decoder(model);
  decoder.append(test::random_tokens(20, 53, 1));
  decoder.clear();
  EXPECT_TRUE(decoder.window().empty());
  const Tokens tokens = test::random_tokens(9, 53, 2);
  EXPECT_TRUE(test::same_bits(test::last_logits(model, tokens), decoder.append(tokens)));
}

TEST(Decoder, BadTokensAreErrorsThatChangeNothing) {
  nn::Transformer model(test::small_config(), true);
  test::fill(model);
  Decoder decoder(model);
  const Tokens good = test::random_tokens(10, 53);
  decoder.append(std::span(good).first(9));
  const auto message = [&](const Tokens& tokens) -> std::string {
    try {
      decoder.append(tokens);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "[generate] tokens: expected at least one, found none");
  EXPECT_EQ(message({1, 53}), "[generate] token 1: expected an id of 0 to 52, found 53");
  EXPECT_EQ(message({-1}), "[generate] token 0: expected an id of 0 to 52, found -1");
  EXPECT_NE(message({std::numeric_limits<int32_t>::max()}), "");
  EXPECT_TRUE(test::same_bits(test::last_logits(model, good), decoder.append(good[9])));
}

}  // namespace
}  // namespace quern
