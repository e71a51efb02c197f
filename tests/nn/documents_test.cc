// Sequences that consist of several documents.
#include "nn/documents.h"

#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "nn/gpt_run.h"

namespace quern::nn {
namespace {

using Lengths = std::vector<std::vector<size_t>>;  // of the documents of each sequence

const Lengths kLengths = {{4, 7}, {11}, {1, 5, 5}};

Data packed_data(const Lengths& lengths = kLengths) {
  Data data;
  for (const std::vector<size_t>& sequence : lengths) {
    for (const size_t length : sequence) {
      for (size_t t = 0; t < length; ++t) data.positions.push_back(static_cast<int32_t>(t));
    }
  }
  return data;
}

class Documents : public ::testing::TestWithParam<Variant> {
 protected:
  static ModelConfig config(float dropout = 0.0f) { return with(GetParam(), small_config(dropout)); }
  static ModelConfig adapted(float dropout) {
    ModelConfig model = config(dropout);
    model.adapters = {.rank = 2, .alpha = 3, .dropout = dropout};
    return model;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Documents, ::testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

TEST(Documents, AreCutAtPositionZeroAndAtTheEndOfASequence) {
  const Data data = packed_data();
  std::vector<std::tuple<size_t, size_t, size_t, size_t>> found;
  for_documents(data.batch(), 2, 30,
                [&](const DocumentRows& part) { found.emplace_back(part.row, part.rows, part.position, part.index); });
  const std::vector<std::tuple<size_t, size_t, size_t, size_t>> expected = {
      {2, 2, 2, 0}, {4, 7, 0, 1}, {11, 11, 0, 0}, {22, 1, 0, 0}, {23, 5, 0, 1}, {28, 2, 0, 2}};
  EXPECT_EQ(found, expected);
}

TEST_P(Documents, GradientMatchesFiniteDifferencesOfTheDoublePrecisionTwin) {
  for (const float dropout : {0.0f, 0.2f}) {
    Transformer model(config(dropout), false);
    fill(model);
    expect_gradient_of_twin(model, model.config(), packed_data());
  }
}

TEST_P(Documents, GradientOfAdaptersMatchesFiniteDifferencesOfTheDoublePrecisionTwin) {
  Transformer model(adapted(0.2f), false);
  fill(model);
  expect_gradient_of_twin(model, model.config(), packed_data());
}

TEST_P(Documents, AnyTeamIntervalAndCutGivesTheSameBits) {
  const Data data = packed_data();
  for (const ModelConfig& config : {config(0.1f), adapted(0.1f)}) {
    Transformer model(config, true);
    fill(model);
    const Result whole = run(model, data);
    for (const size_t at_once : {1, 2}) EXPECT_EQ(run(model, data, at_once, 1.0f, 1).gradient, whole.gradient);
    for (const size_t members : {2, 3, 4}) EXPECT_EQ(run_in_team(model, data, members, members % 2), whole) << members;
  }
}

TEST_P(Documents, SameOnEveryTargetWithFusedMultiplyAdd) {
  std::vector<Result> results;
  test::for_each_target([&](const kernels::Target& target) {
    Transformer model(config(0.1f), true);
    fill(model);
    if (target.fma) results.push_back(run(model, packed_data()));
  });
  for (const Result& result : results) EXPECT_EQ(result, results.front());
}

struct Separate {
  std::vector<float> losses;
  std::vector<float> gradient;
};

// Every document as a sequence and a micro-batch of its own.
Separate run_separately(const Model& model, const Data& data, const Lengths& lengths) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(), {.sequences = 1, .backward = true});
  Separate result;
  size_t documents = 0;
  for (const auto& sequence : lengths) documents += sequence.size();
  size_t row = 0;
  uint32_t number = 0;
  for (const std::vector<size_t>& sequence : lengths) {
    for (const size_t length : sequence) {
      const MicroBatch batch{
          .columns = {{kTokensColumn, data.tokens.data() + row}, {kTargetsColumn, data.targets.data() + row}},
          .sequences = 1,
          .T = length,
          .turn = {.number = number, .first = number == 0, .last = number + 1 == documents}};
      model.forward_backward(batch, {.scale = 1.0f, .gradient = gradient}, work);
      result.losses.insert(result.losses.end(), work.losses.begin(),
                           work.losses.begin() + static_cast<ptrdiff_t>(length));
      row += length;
      ++number;
    }
  }
  gradient.join_all();
  result.gradient.assign(gradient.values().begin(), gradient.values().end());
  return result;
}

// To the bit: rows are computed alone, and sums over rows go on from document to document.
TEST_P(Documents, GiveTheLossesAndTheGradientOfSeparateSequences) {
  const Data data = packed_data();
  for (const ModelConfig& config : {config(), adapted(0.0f)}) {
    Transformer model(config, true);
    fill(model);
    Workspace work(model.activations(), {.sequences = kSequences, .backward = true});
    Gradient gradient(model.parameters());
    model.forward_backward(data.batch(), {.scale = 1.0f, .gradient = gradient}, work);
    gradient.join_all();
    const Separate separate = run_separately(model, data, kLengths);
    EXPECT_TRUE(test::same_bits(separate.losses, work.losses.first(kSequences * kT)));
    EXPECT_TRUE(test::same_bits(separate.gradient, gradient.values()));
  }
}

// Documents longer than a block of the attention kernel, which start anywhere in it.
TEST_P(Documents, LongOnesGiveTheLossesOfSeparateSequences) {
  ModelConfig model_config = config();
  model_config.context = 300;
  Transformer model(model_config, true);
  fill(model);
  std::mt19937 random(3);
  std::vector<int32_t> tokens(300), targets(300), positions;
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 29);
  for (int32_t& target : targets) target = static_cast<int32_t>(random() % 29);
  const std::vector<size_t> lengths = {65, 130, 1, 63, 41};
  for (const size_t length : lengths) {
    for (size_t t = 0; t < length; ++t) positions.push_back(static_cast<int32_t>(t));
  }
  const auto losses = [&](size_t first, size_t T, bool with_positions) {
    Workspace work(model.activations(), {});
    MicroBatch batch{.columns = {{kTokensColumn, tokens.data() + first}, {kTargetsColumn, targets.data() + first}},
                     .sequences = 1,
                     .T = T};
    if (with_positions) batch.columns.add({kPositionsColumn, positions.data() + first});
    model.loss(batch, work);
    return std::vector<float>(work.losses.begin(), work.losses.begin() + static_cast<ptrdiff_t>(T));
  };
  std::vector<float> separate;
  for (size_t first = 0, i = 0; i < lengths.size(); first += lengths[i++]) {
    const std::vector<float> part = losses(first, lengths[i], false);
    separate.insert(separate.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(test::same_bits(separate, losses(0, 300, true)));
  EXPECT_FALSE(test::same_bits(separate, losses(0, 300, false)));
}

// Other tokens in every other document leave a document's losses alone, also with dropout.
TEST_P(Documents, DoNotDependOnTheirNeighbours) {
  const Data data = packed_data();
  Transformer model(config(0.2f), true);
  fill(model);
  const auto losses = [&](const Data& some) {
    Workspace work(model.activations(), {.sequences = kSequences, .backward = true});
    Gradient gradient(model.parameters());
    model.forward_backward(some.batch(), {.scale = 1.0f, .gradient = gradient}, work);
    return std::vector<float>(work.losses.begin(), work.losses.end());
  };
  const std::vector<float> before = losses(data);
  Data changed = data;
  for (const size_t row : {0u, 1u, 2u, 3u, 22u, 28u, 29u, 30u, 31u, 32u}) {
    changed.tokens[row] = (changed.tokens[row] + 7) % 29;
  }
  const std::vector<float> after = losses(changed);
  const auto part = [](const std::vector<float>& all, size_t first, size_t n) {
    return std::span(all).subspan(first, n);
  };
  EXPECT_TRUE(test::same_bits(part(before, 4, 18), part(after, 4, 18)));  // the second, and the second sequence
  EXPECT_TRUE(test::same_bits(part(before, 23, 5), part(after, 23, 5)));
  EXPECT_FALSE(test::same_bits(part(before, 0, 4), part(after, 0, 4)));
}

TEST_P(Documents, OfTheSameTokensHaveTheSameLosses) {
  Data data = packed_data({{5, 6}, {11}, {5, 5, 1}});
  for (size_t t = 0; t < 5; ++t) {
    for (const size_t other : {22u, 27u}) {
      data.tokens[other + t] = data.tokens[t];
      data.targets[other + t] = data.targets[t];
    }
  }
  Transformer model(config(), true);
  fill(model);
  Workspace work(model.activations(), {.sequences = kSequences});
  model.loss(data.batch(), work);
  for (const size_t other : {22u, 27u}) {
    EXPECT_TRUE(test::same_bits(work.losses.first(5), work.losses.subspan(other, 5))) << other;
  }
}

// As in the padding of a row: each token a document, none of which counts.
TEST_P(Documents, RowsWithoutTargetsLeaveNoTraceInTheGradient) {
  const Data data;
  Data padded = data;
  const Lengths lengths = {{6, 1, 1, 1, 1, 1}, {11}, {11}};
  padded.positions = packed_data(lengths).positions;
  for (size_t row = 6; row < 11; ++row) padded.targets[row] = kernels::kIgnoreTarget;
  Transformer model(adapted(0.0f), true);
  fill(model);
  const Result result = run(model, padded);
  for (size_t row = 6; row < 11; ++row) padded.tokens[row] = 0;
  EXPECT_EQ(run(model, padded), result);
  for (size_t row = 11; row < 33; ++row) padded.targets[row] = kernels::kIgnoreTarget;  // whole sequences, too
  const Result first = run(model, padded, 1);
  EXPECT_LT(first.loss, result.loss);
  EXPECT_EQ(run_in_team(model, padded, 2).gradient, first.gradient);
}

}  // namespace
}  // namespace quern::nn
