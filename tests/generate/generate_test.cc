#include "generate/generate.h"

#include <limits>

#include "core/error.h"
#include "generate/model.h"
#include "support/watchdog.h"

namespace quern {
namespace {

using Tokens = std::vector<int32_t>;

struct Model {
  explicit Model(size_t context = 37) : gpt(test::small_config(context), true), decoder(gpt) { test::fill(gpt); }
  Tokens generate(const Tokens& prompt, const GenerateOptions& options) {
    Tokens made;
    const size_t count = quern::generate(decoder, prompt, options, [&](int32_t token) {
      made.push_back(token);
      return true;
    });
    EXPECT_EQ(count, made.size());
    return made;
  }
  Gpt gpt;
  Decoder decoder;
};

// The same by whole forward passes, past the end of the context.
TEST(Generate, GreedyTextIsThatOfWholeForwardPasses) {
  Model model(16);
  const Tokens made = model.generate({5, 1, 7}, {.max_tokens = 50, .sampling = {.temperature = 0.0f}});
  ASSERT_EQ(made.size(), 50u);
  Tokens window = {5, 1, 7};
  for (const int32_t token : made) {
    const std::vector<float> logits = test::last_logits(model.gpt, window);
    EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (window.size() == 16) window.erase(window.begin(), window.begin() + 8);
    window.push_back(token);
  }
}

TEST(Generate, TheSameSeedGivesTheSameTextWhateverCameBefore) {
  Model model;
  const Tokens first = model.generate({1, 2, 3}, {.max_tokens = 60, .sampling = {.seed = 4}});
  EXPECT_NE(model.generate({1, 2, 3}, {.max_tokens = 60, .sampling = {.seed = 5}}), first);
  EXPECT_EQ(model.generate({1, 2, 3}, {.max_tokens = 60, .sampling = {.seed = 4}}), first);
  EXPECT_EQ(model.generate({1, 2, 3}, {.max_tokens = 20, .sampling = {.seed = 4}}),
            Tokens(first.begin(), first.begin() + 20));
}

TEST(Generate, TheSameTextOnEveryTargetWithFusedMultiplyAdd) {
  std::vector<Tokens> texts;
  test::for_each_target([&](const kernels::Target& target) {
    Model model;
    const Tokens made = model.generate({1, 2, 3}, {.max_tokens = 100, .sampling = {.top_p = 0.9f, .seed = 4}});
    if (target.fma) texts.push_back(made);
  });
  for (const Tokens& text : texts) EXPECT_EQ(text, texts.front());
}

TEST(Generate, TheSameTextWithAnyNumberOfThreads) {
  const test::Watchdog watchdog("generation by teams");
  Model model;
  const GenerateOptions options{.max_tokens = 100, .sampling = {.top_p = 0.9f, .seed = 4}};
  const Tokens expected = model.generate({1, 2, 3}, options);
  for (const size_t threads : {2, 3, 4, 8}) {
    Decoder decoder(model.gpt, {.threads = threads, .share_all = true});
    Tokens made;
    generate(decoder, Tokens{1, 2, 3}, options, [&](int32_t token) {
      made.push_back(token);
      return true;
    });
    EXPECT_EQ(made, expected) << threads;
  }
}

TEST(Generate, StopsWhenToldTo) {
  Model model;
  Tokens made;
  const size_t count = generate(model.decoder, Tokens{9}, {.max_tokens = 100}, [&](int32_t token) {
    made.push_back(token);
    return made.size() < 5;
  });
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(made.size(), 5u);
  EXPECT_TRUE(model.generate({9}, {.max_tokens = 0}).empty());
}

TEST(Generate, BadInputIsAnError) {
  Model model;
  EXPECT_THROW(model.generate({}, {}), Error);
  EXPECT_THROW(model.generate({53}, {}), Error);
  EXPECT_THROW(model.generate({1}, {.sampling = {.temperature = -1.0f}}), Error);
  EXPECT_THROW(model.generate({1}, {.max_tokens = std::numeric_limits<size_t>::max()}), Error);
}

// A model that diverged: said so, not sampled from.
TEST(Generate, WeightsThatAreNotNumbersAreAnError) {
  Model model;
  model.gpt.weights().values()[model.gpt.layout().final_norm().bias] = std::nanf("");
  EXPECT_THROW(model.generate({1}, {}), Error);
}

}  // namespace
}  // namespace quern
