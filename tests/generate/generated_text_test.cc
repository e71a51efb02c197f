#include "generate/generated_text.h"

#include "data/byte_tokenizer.h"
#include "generate/model.h"
#include "generate/text_generation.h"
#include "support/message.h"

namespace quern {
namespace {

// Byte tokens, so that every stop string and many a character spans several.
class GeneratedTextTest : public ::testing::Test {
 protected:
  struct Result {
    std::vector<std::string> pieces;
    std::string text;
    std::optional<Finish> finish;
    size_t tokens;
  };

  GeneratedTextTest() { test::fill(gpt_); }

  static nn::ModelConfig config() {
    nn::ModelConfig config = test::small_config(300);
    config.vocabulary = 256;
    return config;
  }

  Result generate(const std::vector<std::string>& stop, const GenerateOptions& options) {
    GeneratedText generated(decoder_, *tokenizer_, std::vector<int32_t>{65}, options, stop);
    Result result{};
    EXPECT_EQ(generated.finish(), std::nullopt);
    for (std::string piece = generated.next(); !piece.empty(); piece = generated.next()) {
      result.pieces.push_back(piece);
      result.text += piece;
    }
    EXPECT_EQ(generated.next(), "");
    result.finish = generated.finish();
    result.tokens = generated.tokens();
    return result;
  }

  std::unique_ptr<data::Tokenizer> tokenizer_ = std::make_unique<data::ByteTokenizer>();
  nn::Transformer gpt_{config(), true};
  Decoder decoder_{gpt_};
  GenerateOptions options_{.max_tokens = 200, .sampling = {.seed = 2}};
};

// The tokens are those of the text without stop strings.
TEST_F(GeneratedTextTest, EndsBeforeAStopStringOfSeveralTokens) {
  const Result whole = generate({}, options_);
  ASSERT_EQ(whole.finish, Finish::kLength);
  ASSERT_EQ(whole.tokens, 200u);
  for (const size_t at : {0u, 1u, 20u, 60u}) {
    std::string stop;
    for (size_t i = at; i < at + 5; ++i) stop += whole.pieces[i];
    const Result found = generate({"not in the text", stop}, options_);
    EXPECT_EQ(found.text, whole.text.substr(0, whole.text.find(stop)));
    EXPECT_EQ(found.finish, Finish::kStop);
    EXPECT_LT(found.tokens, 200u);
  }
}

// The last characters may begin a stop string that never comes.
TEST_F(GeneratedTextTest, ATextThatEndsWithinAStopStringIsComplete) {
  const Result whole = generate({}, options_);
  const Result found = generate({whole.text.substr(whole.text.size() - 6) + "never"}, options_);
  EXPECT_EQ(found.text, whole.text);
  EXPECT_EQ(found.finish, Finish::kLength);
}

TEST_F(GeneratedTextTest, AnEndTokenIsAnotherReason) {
  GenerateOptions options = options_;
  for (int32_t token = 0; token < 128; ++token) options.end_tokens.push_back(token);
  const Result found = generate({"not in the text"}, options);
  EXPECT_EQ(found.finish, Finish::kEnd);
  EXPECT_LT(found.tokens, 200u);
}

TEST_F(GeneratedTextTest, ReasonsHaveTheNamesThatProgramsRead) {
  EXPECT_EQ(name_of(Finish::kLength), "length");
  EXPECT_EQ(name_of(Finish::kEnd), "end");
  EXPECT_EQ(name_of(Finish::kStop), "stop");
}

// One with its own decoder gives the same, past the context and with the smallest cache.
TEST_F(GeneratedTextTest, ATextGenerationGivesTheSame) {
  for (const size_t tokens : {0u, 1u, 50u, 400u}) {
    options_.max_tokens = tokens;
    const std::vector<std::string> stop = {"zq"};
    TextGeneration generation(gpt_, *tokenizer_, {.prompt = "A", .options = options_, .stop = stop});
    std::string text;
    for (std::string piece = generation.next(); !piece.empty(); piece = generation.next()) text += piece;
    const Result expected = generate(stop, options_);
    EXPECT_EQ(text, expected.text);
    EXPECT_EQ(generation.finish(), expected.finish);
  }
  EXPECT_EQ(test::message_of([&] { TextGeneration(gpt_, *tokenizer_, {.stop = {""}}); }),
            "[generate] stop: expected at least one character, found an empty string");
}

}  // namespace
}  // namespace quern
