#include "generate/generate.h"

#include <limits>
#include <set>

#include "core/error.h"
#include "data/bpe_tokenizer.h"
#include "data/bpe_trainer.h"
#include "data/char_tokenizer.h"
#include "generate/model.h"
#include "support/message.h"
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
  nn::Transformer gpt;
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

TEST(Generate, SamplesHaveTheirOwnRandomNumbers) {
  Model model;
  const auto sample = [&](uint32_t i) {
    return model.generate({1, 2, 3}, {.max_tokens = 60, .sampling = {.seed = 4, .sample = i}});
  };
  EXPECT_EQ(sample(0), model.generate({1, 2, 3}, {.max_tokens = 60, .sampling = {.seed = 4}}));
  EXPECT_EQ(sample(1), sample(1));
  EXPECT_NE(sample(1), sample(0));
  EXPECT_NE(sample(2), sample(1));
  EXPECT_NE(sample(1), model.generate({1, 2, 3}, {.max_tokens = 60, .sampling = {.seed = 5}}));
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

// The same by hand: the penalty on whole forward passes. The prompt counts, and so do tokens that the window lost.
TEST(Generate, GreedyTextWithARepeatPenaltyIsThatOfPenalisedLogits) {
  for (const size_t repeat_window : {0u, 1u, 7u, 64u}) {
    Model model(16);
    const GenerateOptions options{
        .max_tokens = 40, .sampling = {.temperature = 0.0f, .repeat_penalty = 1.5f, .repeat_window = repeat_window}};
    Tokens text = {5, 1, 7}, window = text;
    for (const int32_t token : model.generate(text, options)) {
      std::vector<float> logits = test::last_logits(model.gpt, window);
      const size_t recent = repeat_window == 0 ? text.size() : std::min(repeat_window, text.size());
      for (const int32_t seen : std::set<int32_t>(text.end() - static_cast<ptrdiff_t>(recent), text.end())) {
        float& logit = logits[static_cast<size_t>(seen)];
        logit = logit > 0 ? logit / 1.5f : logit * 1.5f;
      }
      ASSERT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin()) << repeat_window;
      if (window.size() == 16) window.erase(window.begin(), window.begin() + 8);
      window.push_back(token);
      text.push_back(token);
    }
    EXPECT_EQ(text.size(), 43u);
  }
}

TEST(Generate, ADecoderOfTheNeededCapacityGivesTheSameText) {
  Model model(100);
  const GenerateOptions options{.max_tokens = 30, .sampling = {.seed = 4}};
  Decoder decoder(model.gpt, {.capacity = positions_for(model.gpt, 3, 30)});
  Tokens made;
  generate(decoder, Tokens{1, 2, 3}, options, [&](int32_t token) {
    made.push_back(token);
    return true;
  });
  EXPECT_EQ(made, model.generate({1, 2, 3}, options));
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
  model.gpt.weights().values()[model.gpt.parameters().all().back().offset] = std::nanf("");  // ln_f.bias
  EXPECT_THROW(model.generate({1}, {}), Error);
}

// Every way of choosing a token.
const std::vector<Sampling> kSamplings = {{.temperature = 0.0f},
                                          {},
                                          {.temperature = 100.0f},
                                          {.top_k = 1},
                                          {.top_k = 40},
                                          {.top_p = 0.1f},
                                          {.min_p = 0.01f},
                                          {.temperature = 0.0f, .repeat_penalty = 3.0f},
                                          {.temperature = 3.0f, .top_k = 52, .top_p = 0.99f}};

// model.vocabulary can ask for more rows than the tokenizer has tokens, as the preset gpt2 does for a small text. Their
// logits are as high as any here; drawn, they were ids that nothing could decode.
TEST(Generate, RowsThatAreNoTokensAreNeverDrawn) {
  Model model;
  const auto tokenizer = data::CharTokenizer::from_text("abcdefg\n", "text");
  for (Sampling sampling : kSamplings) {
    for (sampling.seed = 0; sampling.seed < 4; ++sampling.seed) {
      const GenerateOptions options{.max_tokens = 60, .sampling = sampling};
      size_t made = 0;
      generate(Generation(model.decoder, *tokenizer, Tokens{1}, options), [&](int32_t token) {
        EXPECT_LT(token, tokenizer->vocabulary_size());
        ++made;
        return true;
      });
      EXPECT_EQ(made, 60u);
    }
  }
}

// Without filler rows a tokenizer changes nothing.
TEST(Generate, ATokenizerWithAllRowsGivesTheSameText) {
  Model model;
  std::string characters;
  for (int i = 0; i < 53; ++i) characters += static_cast<char>('A' + i);
  const auto tokenizer = data::CharTokenizer::from_text(characters, "text");
  const GenerateOptions options{.max_tokens = 60, .sampling = {.top_p = 0.9f, .seed = 4}};
  Tokens made;
  generate(Generation(model.decoder, *tokenizer, Tokens{1, 2, 3}, options), [&](int32_t token) {
    made.push_back(token);
    return true;
  });
  EXPECT_EQ(made, model.generate({1, 2, 3}, options));
}

class GenerateBpe : public ::testing::Test {
 protected:
  GenerateBpe() { test::fill(gpt_); }
  static std::unique_ptr<data::Tokenizer> learned() {
    data::BpeTrainer trainer;
    trainer.add("ab ab ab");
    return trainer.train(data::with_end_of_text(300));
  }
  static nn::ModelConfig config(size_t vocabulary) {
    nn::ModelConfig config = test::small_config();
    config.vocabulary = vocabulary;
    return config;
  }
  Tokens text(uint64_t seed, bool ignore_end) {
    const GenerateOptions options{
        .max_tokens = 400, .sampling = {.temperature = 20.0f, .seed = seed}, .ignore_end = ignore_end};
    Generation generation(decoder_, *tokenizer_, Tokens{5}, options);
    Tokens made;
    for (auto token = generation.next(); token; token = generation.next()) made.push_back(*token);
    EXPECT_EQ(generation.next(), std::nullopt);
    EXPECT_EQ(generation.made(), made.size());
    EXPECT_EQ(generation.ended(), made.size() < 400);
    return made;
  }

  std::unique_ptr<data::Tokenizer> tokenizer_ = learned();
  int32_t end_ = tokenizer_->end_of_text().value();
  nn::Transformer gpt_{config(static_cast<size_t>(tokenizer_->vocabulary_size()) + 20), true};
  Decoder decoder_{gpt_};
};

TEST_F(GenerateBpe, StopsAtTheEndOfTextUnlessItIsIgnored) {
  size_t stopped = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Tokens all = text(seed, true), made = text(seed, false);
    EXPECT_EQ(all.size(), 400u);
    const auto end = std::find(all.begin(), all.end(), end_);
    EXPECT_EQ(made, Tokens(all.begin(), end)) << seed;
    stopped += end != all.end();
  }
  EXPECT_GT(stopped, 0u);
}

TEST_F(GenerateBpe, StopsAtTheFirstOfSeveralEndTokens) {
  const Tokens all = text(3, true);
  const std::set<int32_t> ends = {all[30], all[70]};
  const GenerateOptions options{.max_tokens = 400,
                                .sampling = {.temperature = 20.0f, .seed = 3},
                                .end_tokens = Tokens{all[70], all[30], all[70]}};
  const auto first =
      std::find_if(all.begin(), all.end(), [&](int32_t token) { return token == end_ || ends.contains(token); });
  Tokens made;
  Generation generation(decoder_, *tokenizer_, Tokens{5}, options);
  for (auto token = generation.next(); token; token = generation.next()) made.push_back(*token);
  EXPECT_EQ(made, Tokens(all.begin(), first));
  EXPECT_TRUE(generation.ended());
  GenerateOptions ignoring = options;
  ignoring.ignore_end = true;
  size_t count = 0;
  generate(Generation(decoder_, *tokenizer_, Tokens{5}, ignoring), [&](int32_t) { return ++count > 0; });
  EXPECT_EQ(count, 400u);
}

// Also without a tokenizer.
TEST(Generate, EndTokensMustBeInTheVocabulary) {
  Model model;
  EXPECT_EQ(test::message_of([&] {
              model.generate({1}, {.end_tokens = {3, 53}});
            }),
            "[generate] end_tokens: expected ids of 0 to 52, found 53");
  EXPECT_THROW(model.generate({1}, {.end_tokens = {-1}, .ignore_end = true}), Error);
  const Tokens all = model.generate({1}, {.max_tokens = 20});
  const Tokens made = model.generate({1}, {.max_tokens = 20, .end_tokens = {all[5]}});
  EXPECT_EQ(made, Tokens(all.begin(), std::find(all.begin(), all.end(), all[5])));
}

TEST(DefaultPrompt, IsALineFeedOrWhatTheVocabularyHas) {
  const auto text_of = [](std::string_view characters) {
    const auto tokenizer = data::CharTokenizer::from_text(characters, "text");
    const Prompt prompt = default_prompt(*tokenizer);
    EXPECT_EQ(tokenizer->decode(prompt.tokens), prompt.text);
    return prompt.text;
  };
  EXPECT_EQ(text_of("a b\n"), "\n");
  EXPECT_EQ(text_of("ab cd"), " ");
  EXPECT_EQ(text_of("zyx"), "x");
}

TEST(EmptyPrompt, StartsADocument) {
  data::BpeTrainer trainer;
  trainer.add("some text, some more text");
  const auto bpe = trainer.train(data::with_end_of_text(260));
  EXPECT_EQ(prompt_of(*bpe, "").tokens, Tokens{*bpe->end_of_text()});
  EXPECT_EQ(prompt_of(*bpe, "").text, "");
  const auto characters = data::CharTokenizer::from_text("a b\n", "text");
  EXPECT_EQ(prompt_of(*characters, "").tokens, default_prompt(*characters).tokens);
}

// All bytes, and <s> and </s>, which begin and end a text.
TEST(Prompt, StartsWithTheBeginOfTextOnce) {
  data::BpeModel model;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"<s>", "</s>"}) {
    model.added.push_back({.content = text, .id = static_cast<int32_t>(model.tokens.size())});
    model.tokens.emplace_back(text);
  }
  model.begin_of_text = 256;
  model.end_of_text = 257;
  const data::BpeTokenizer tokenizer(model, "test");
  EXPECT_EQ(prompt_of(tokenizer, "ab").tokens, (Tokens{256, 'a', 'b'}));
  EXPECT_EQ(prompt_of(tokenizer, "ab").text, "ab");
  EXPECT_EQ(prompt_of(tokenizer, "<s>ab").tokens, (Tokens{256, 'a', 'b'}));
  EXPECT_EQ(prompt_of(tokenizer, "a<s>").tokens, (Tokens{256, 'a', 256}));
  EXPECT_EQ(prompt_of(tokenizer, "").tokens, Tokens{256});
  EXPECT_EQ(default_prompt(tokenizer).tokens, (Tokens{256, '\n'}));
}

}  // namespace
}  // namespace quern
