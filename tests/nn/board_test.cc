// The board network: its gradient, the bits of its results, evaluation without gradient, and what it declares.
#include "nn/models/board.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "nn/board_run.h"

namespace quern::nn {
namespace {

class Board : public ::testing::TestWithParam<BoardVariant> {};
INSTANTIATE_TEST_SUITE_P(Variants, Board, ::testing::ValuesIn(board_variants()),
                         [](const auto& test) { return test.param.name; });

TEST_P(Board, GradientMatchesFiniteDifferencesOfTheDoublePrecisionTwin) {
  const BoardConfig& config = GetParam().config;
  BoardModel model(config, false);
  fill_board(model);
  const Boards data(config);
  std::vector<double> parameters(model.weights().values().begin(), model.weights().values().end());
  const twin::BoardTwin reference(config, parameters);
  struct Slope {
    const Parameter* tensor;
    size_t index;
    double value;
  };
  std::vector<Slope> slopes;
  for (const Parameter& tensor : model.parameters().all()) {
    const size_t stride = std::max<size_t>(1, tensor.size / 12);
    for (size_t e = 0; e < tensor.size; e += stride) {
      const size_t i = tensor.offset + (e + stride > tensor.size ? tensor.size - 1 : e);
      slopes.push_back(
          {&tensor, i, 0.5 * test::derivative([&] { return reference.losses(data.batch()).sum(); }, parameters[i])});
    }
  }
  test::for_each_target([&](const kernels::Target&) {
    const BoardResult found = run_board(model, data);
    EXPECT_NEAR(found.loss, reference.losses(data.batch()).sum(), 1e-3);
    for (const auto& [tensor, i, slope] : slopes) {
      ASSERT_NEAR(found.gradient[i], slope, 2e-4 * std::max(1.0, std::abs(slope)))
          << tensor->name << ", element " << i - tensor->offset;
    }
  });
}

TEST_P(Board, MicroBatchesTeamsPackingAndRecomputationGiveTheSameBits) {
  const BoardConfig& config = GetParam().config;
  BoardModel plain(config, false), packed(config, true);
  fill_board(plain);
  fill_board(packed);
  const Boards data(config);
  const BoardResult expected = run_board(plain, data);
  EXPECT_EQ(run_board(packed, data), expected);
  for (const size_t at_once : {1u, 2u, 3u}) {
    const BoardResult found = run_board(packed, data, at_once, 1);
    EXPECT_EQ(found.gradient, expected.gradient);
    EXPECT_EQ(found.losses, expected.losses);
  }
  for (const size_t members : {2u, 3u, 7u}) EXPECT_EQ(run_board_in_team(packed, data, members, 1), expected);
}

TEST_P(Board, EveryVectorTargetWithFmaGivesTheSameBits) {
  const BoardConfig& config = GetParam().config;
  BoardModel model(config, true);
  fill_board(model);
  const Boards data(config);
  std::vector<BoardResult> results;
  test::for_each_target([&](const kernels::Target& target) {
    model.weights().repack();
    if (target.fma) results.push_back(run_board(model, data));
  });
  model.weights().repack();
  for (const BoardResult& result : results) EXPECT_EQ(result, results.front());
}

TEST_P(Board, LossWithoutGradientHasTheSameBitsAndItsPartsAreThoseOfTheTwin) {
  const BoardConfig& config = GetParam().config;
  BoardModel model(config, true);
  fill_board(model);
  const Boards data(config);
  Workspace work(model.activations(), {.sequences = kPositions});
  const double loss = model.loss(data.batch(), work);
  EXPECT_EQ(loss, run_board(model, data).loss);
  std::vector<double> parameters(model.weights().values().begin(), model.weights().values().end());
  ASSERT_EQ(model.loss_parts(), (std::vector<std::string>{"policy", "value"}));
  double policy = 0, value = 0;
  for (size_t s = 0; s < kPositions; ++s) {
    double parts[2];
    model.losses_of_sequence(work, s, config.squares, parts);
    policy += parts[0];
    value += parts[1];
    EXPECT_EQ(parts[0] + parts[1], work.loss_of_sequence(s, config.squares));
  }
  const auto expected = twin::BoardTwin(config, parameters).losses(data.batch());
  EXPECT_NEAR(policy, expected.policy, 1e-4 * expected.policy + 1e-6);
  EXPECT_NEAR(value, expected.value, 1e-4 * expected.value);
  EXPECT_EQ(model.targets_per_sequence(), 1u);
}

struct Evaluated {
  std::vector<float> logits, outcomes;
  bool operator==(const Evaluated&) const = default;
};

// `count` positions, with a workspace for `at_once` of them.
Evaluated evaluate(const BoardModel& model, const Boards& data, size_t first, size_t count, size_t at_once,
                   size_t members = 1) {
  Evaluated result{std::vector<float>(count * data.config.actions), std::vector<float>(count * kOutcomes)};
  Workspace work(model.activations(), {.sequences = at_once, .members = members});
  const MicroBatch batch{
      .columns = {{kPlanesColumn, nullptr, data.planes.data() + first * data.config.planes * data.config.squares}},
      .sequences = count,
      .T = data.config.squares};
  in_team(members, [&](const Member& member) {
    model.evaluate(batch, result.logits.data(), result.outcomes.data(), work, member);
  });
  return result;
}

TEST_P(Board, EvaluationMatchesTheTwin) {
  const BoardConfig& config = GetParam().config;
  BoardModel model(config, Packing::for_inference());
  fill_board(model);
  const Boards data(config);
  std::vector<double> parameters(model.weights().values().begin(), model.weights().values().end());
  const twin::BoardTwin reference(config, parameters);
  test::for_each_target([&](const kernels::Target&) {
    model.weights().repack();
    const Evaluated found = evaluate(model, data, 0, kPositions, 2);
    for (size_t s = 0; s < kPositions; ++s) {
      const auto expected = reference.outputs(data.batch(), s);
      const auto begin = found.logits.begin() + static_cast<ptrdiff_t>(s * config.actions);
      const std::vector<float> logits(begin, begin + static_cast<ptrdiff_t>(config.actions));
      EXPECT_TRUE(test::close(expected.logits, logits, 1e-3));
      double sum = 0;
      for (const double z : expected.outcome) sum += std::exp(z);
      for (size_t i = 0; i < kOutcomes; ++i) {
        EXPECT_NEAR(found.outcomes[s * kOutcomes + i], std::exp(expected.outcome[i]) / sum, 1e-4);
      }
    }
  });
  model.weights().repack();
}

TEST_P(Board, EvaluationOfAPositionDoesNotDependOnTheOthers) {
  for (const kernels::DType storage : {kernels::DType::kF32, kernels::DType::kBF16, kernels::DType::kF16}) {
    BoardConfig config = GetParam().config;
    config.storage = storage;
    BoardModel model(config, Packing::for_inference());
    fill_board(model);
    const Boards data(config, 23);
    const Evaluated expected = evaluate(model, data, 0, 23, 23);
    for (const size_t at_once : {1u, 2u, 7u, 64u}) EXPECT_EQ(evaluate(model, data, 0, 23, at_once), expected);
    for (const size_t members : {2u}) EXPECT_EQ(evaluate(model, data, 0, 23, 4, members), expected);
    for (const size_t s : {0u, 11u, 22u}) {
      const Evaluated one = evaluate(model, data, s, 1, 3);
      for (size_t a = 0; a < config.actions; ++a) EXPECT_EQ(one.logits[a], expected.logits[s * config.actions + a]);
      for (size_t i = 0; i < kOutcomes; ++i) EXPECT_EQ(one.outcomes[i], expected.outcomes[s * kOutcomes + i]);
    }
  }
}

// In 16 bits, loss and gradient stay near those in fp32, and do not depend on how the work is divided either.
TEST_P(Board, StorageIn16BitsIsCloseAndReproducible) {
  BoardConfig config = GetParam().config;
  const Boards data(config);
  BoardModel exact(config, true);
  fill_board(exact);
  const BoardResult expected = run_board(exact, data);
  double norm = 0;
  for (const float g : expected.gradient) norm += static_cast<double>(g) * g;
  for (const auto& [storage, tolerance] : {std::pair{kernels::DType::kBF16, 0.1}, {kernels::DType::kF16, 0.01}}) {
    config.storage = storage;
    BoardModel model(config, true);
    fill_board(model);
    const BoardResult found = run_board(model, data);
    EXPECT_EQ(run_board(model, data, 2, 1).gradient, found.gradient);
    EXPECT_EQ(run_board_in_team(model, data, 3, 1), found);
    double difference = 0;
    for (size_t i = 0; i < found.gradient.size(); ++i) {
      difference += std::pow(static_cast<double>(found.gradient[i] - expected.gradient[i]), 2);
    }
    EXPECT_GT(difference, 0.0);
    EXPECT_LT(std::sqrt(difference / norm), tolerance);
  }
}

// Without a mask, the first square learns of the last one; a shift of the planes reaches all logits.
TEST(BoardModel, EverySquareSeesAllOthers) {
  const BoardConfig config = small_board();
  BoardModel model(config, true);
  fill_board(model);
  Boards data(config);
  const Evaluated before = evaluate(model, data, 0, 1, 1);
  data.planes[config.squares - 1] += 1.0f;  // of the last square
  const Evaluated after = evaluate(model, data, 0, 1, 1);
  for (size_t a = 0; a < config.actions; ++a) EXPECT_NE(before.logits[a], after.logits[a]) << a;
}

TEST(BoardModel, PlanCountsMultiplyAddsAndColumns) {
  const BoardConfig config = small_board();
  const Declaration model = BoardModel::declare(config);
  const ForwardCost& cost = model.activations.cost;
  EXPECT_EQ(cost.products, 2.0 * 12 * 24 * 24);
  EXPECT_EQ(cost.attention_width, 2.0 * 2 * 24);  // all keys: twice a causal layer's, for two layers
  EXPECT_NEAR(cost.output_products, 24.0 * 3 + 24.0 * 3 + 24.0 * 27 / 12, 1e-9);
  EXPECT_EQ(model.columns, (std::vector<ColumnSpec>{{kPlanesColumn, ColumnType::kFloat32, 36},
                                                    {kPolicyColumn, ColumnType::kFloat32, 31},
                                                    {kOutcomeColumn, ColumnType::kFloat32, 3}}));
}

TEST(BoardModel, BadConfigsAreErrorsThatNameTheField) {
  const auto message = [](auto change) {
    BoardConfig config = small_board();
    change(config);
    try {
      BoardModel::declare(config);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message([](BoardConfig& c) { c.squares = 1; }).find("squares: expected 2 to"), std::string::npos);
  EXPECT_NE(message([](BoardConfig& c) { c.planes = 0; }).find("planes"), std::string::npos);
  EXPECT_NE(message([](BoardConfig& c) { c.actions = 0; }).find("actions"), std::string::npos);
  EXPECT_NE(message([](BoardConfig& c) { c.heads = 5; }).find("multiple of heads (5), found 24"), std::string::npos);
  EXPECT_NE(message([](BoardConfig& c) { c.layers = 0; }).find("layers"), std::string::npos);
  EXPECT_NE(message([](BoardConfig& c) { c.value_weight = 0; }).find("value_weight"), std::string::npos);
  EXPECT_NE(message([](BoardConfig& c) { c.norm_epsilon = -1; }).find("norm_epsilon"), std::string::npos);
}

TEST(BoardModel, TargetsThatTheLossCannotUseAreErrors) {
  const BoardConfig config = small_board();
  const Boards good(config);
  EXPECT_NO_THROW(check_targets(config, good.batch()));
  const auto message = [&](auto change) {
    Boards bad = good;
    change(bad);
    try {
      check_targets(config, bad.batch());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message([](Boards& b) {
              std::fill_n(b.policy.begin() + 2 * 31, 31, -1.0f);
            }).find("policy of position 2: expected a legal move, found none"),
            std::string::npos);
  EXPECT_NE(
      message([](Boards& b) { b.policy[0] += 0.5f; }).find("policy of position 0: expected a sum of 1, found 1.5"),
      std::string::npos);
  EXPECT_NE(message([](Boards& b) { b.policy[0] = std::nanf(""); }).find("position 0"), std::string::npos);
  EXPECT_NE(message([](Boards& b) { b.outcome[5] += 0.1f; }).find("outcome of position 1"), std::string::npos);
  EXPECT_NE(message([](Boards& b) {
              b.outcome[0] = -0.5f;
              b.outcome[1] = 1.0f;
              b.outcome[2] = 0.0f;
            }).find("expected 0 or more"),
            std::string::npos);
}

}  // namespace
}  // namespace quern::nn
