#include "generate/decoder.h"

#include <limits>
#include <string>

#include "core/error.h"
#include "generate/model.h"

namespace quern {
namespace {

using Tokens = std::vector<int32_t>;

class DecoderBits : public ::testing::TestWithParam<bool> {};  // packed

TEST_P(DecoderBits, OneTokenAtATimeIsTheWholeForward) {
  test::for_each_target([](const kernels::Target&) {
    Gpt model(test::small_config(), GetParam());
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
    Gpt model(test::small_config(150), GetParam());
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
INSTANTIATE_TEST_SUITE_P(Packed, DecoderBits, ::testing::Bool());

TEST(Decoder, SameOnEveryTargetWithFusedMultiplyAdd) {
  std::vector<std::vector<float>> results;
  test::for_each_target([&](const kernels::Target& target) {
    Gpt model(test::small_config(), true);
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
  Gpt model(test::small_config(8), true);
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
    Gpt model(test::small_config(context), true);
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

TEST(Decoder, ClearStartsAfresh) {
  Gpt model(test::small_config(), true);
  test::fill(model);
  Decoder decoder(model);
  decoder.append(test::random_tokens(20, 53, 1));
  decoder.clear();
  EXPECT_TRUE(decoder.window().empty());
  const Tokens tokens = test::random_tokens(9, 53, 2);
  EXPECT_TRUE(test::same_bits(test::last_logits(model, tokens), decoder.append(tokens)));
}

TEST(Decoder, BadTokensAreErrorsThatChangeNothing) {
  Gpt model(test::small_config(), true);
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
