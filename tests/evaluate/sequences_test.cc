#include "evaluate/sequences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "evaluate/evaluate.h"
#include "support/message.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

constexpr size_t kContext = 12;
constexpr uint32_t kVocabulary = 29;

class SequencesTest : public ::testing::Test {
 protected:
  SequencesTest()
      : model_({.layers = 2, .heads = 2, .width = 32, .context = kContext, .vocabulary = kVocabulary}, true),
        stream_(7 * kContext + 1, kVocabulary),
        tokens_(stream_.size()) {
    model_.initialise(3);
    for (float& weight : model_.weights().values()) weight *= 8;  // far from equal probabilities
    model_.weights().repack();
    stream_.copy(0, tokens_.size(), tokens_.data());
  }

  std::vector<float> logits(const Sequences& sequences, size_t threads) const {
    std::vector<float> out(sequences.tokens.size() * kVocabulary, NAN);
    compute_logits(model_, sequences, threads, out);
    return out;
  }

  // The windows of evaluate(): each begins with the last token of the one before.
  std::vector<int32_t> windows() const {
    std::vector<int32_t> all;
    for (size_t at = 0; at + kContext < tokens_.size(); at += kContext) {
      const auto begin = tokens_.begin() + static_cast<ptrdiff_t>(at);
      all.insert(all.end(), begin, begin + kContext + 1);
    }
    return all;
  }

  nn::Transformer model_;
  test::RandomTokens stream_;
  std::vector<int32_t> tokens_;
};

TEST_F(SequencesTest, LogitsDoNotDependOnThreadsOrBatch) {
  const std::vector<float> all = logits({std::span(tokens_).first(70), 7, 10}, 1);
  for (const size_t threads : {2, 3, 16}) EXPECT_EQ(logits({std::span(tokens_).first(70), 7, 10}, threads), all);
  for (size_t s = 0; s < 7; ++s) {
    const std::vector<float> alone = logits({std::span(tokens_).subspan(s * 10, 10), 1, 10}, 2);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + static_cast<ptrdiff_t>(s * 10 * kVocabulary)));
  }
}

TEST_F(SequencesTest, LossMatchesLogits) {
  const Sequences sequences{std::span(tokens_).first(30), 3, 10};
  const std::vector<float> all = logits(sequences, 2);
  double sum = 0;
  for (size_t i = 0; i < 30; ++i) {
    if (i % 10 == 9) continue;  // nothing follows
    double total = 0;
    for (size_t v = 0; v < kVocabulary; ++v) total += std::exp(static_cast<double>(all[i * kVocabulary + v]));
    sum += std::log(total) - static_cast<double>(all[i * kVocabulary + static_cast<size_t>(tokens_[i + 1])]);
  }
  EXPECT_GT(sum / 27, 0.1);
  EXPECT_NEAR(compute_loss(model_, sequences, 2), sum / 27, 1e-5);
}

TEST_F(SequencesTest, LossMatchesEvaluate) {
  const std::vector<int32_t> all = windows();
  const Evaluation evaluation =
      evaluate(model_, data::ValidationBatches({&stream_, 0, stream_.size()}, kContext), 2, nullptr);
  for (const size_t threads : {1, 3}) {
    EXPECT_EQ(compute_loss(model_, {all, 7, kContext + 1}, threads), evaluation.loss);
  }
}

TEST_F(SequencesTest, BadInputIsNamed) {
  std::vector<float> out(13 * kVocabulary, 5.0f);
  const auto refuses = [&](const Sequences& sequences) {
    return quern::test::message_of([&] { compute_logits(model_, sequences, 1, out); });
  };
  EXPECT_EQ(refuses({std::span(tokens_).first(13), 1, 13}),
            "[model] tokens: expected sequences of 1 to 12 tokens, found 13");
  EXPECT_EQ(refuses({{}, 3, 0}), "[model] tokens: expected sequences of 1 to 12 tokens, found 0");
  tokens_[5] = 29;
  EXPECT_EQ(refuses({std::span(tokens_).first(6), 2, 3}),
            "[model] tokens: expected ids of 0 to 28, found 29 at position 2 of sequence 1");
  tokens_[5] = -1;
  EXPECT_EQ(quern::test::message_of([&] {
              compute_loss(model_, {std::span(tokens_).first(6), 1, 6}, 1);
            }),
            "[model] tokens: expected ids of 0 to 28, found -1 at position 5 of sequence 0");
  EXPECT_EQ(quern::test::message_of([&] {
              compute_loss(model_, {{}, 0, 6}, 1);
            }),
            "[model] tokens: expected at least one sequence, found none");
  EXPECT_EQ(quern::test::message_of([&] {
              compute_loss(model_, {std::span(tokens_).first(1), 1, 1}, 1);
            }),
            "[model] tokens: expected sequences of 2 to 13 tokens, found 1");
  EXPECT_EQ(out, std::vector<float>(out.size(), 5.0f));
}

}  // namespace
}  // namespace quern::train
