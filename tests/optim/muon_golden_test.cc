// Four updates against torch.optim.Muon in double precision. The values were made by scripts/make_golden_muon.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "optim/muon.h"
#include "support/golden.h"
#include "support/support.h"

namespace quern {
namespace {

using nlohmann::json;

// Of the norm of the change of the weights. The largest error over all targets is 9.2e-7.
constexpr double kTolerance = 4e-6;

std::vector<float> units(size_t stream, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(test::unit(stream, i));
  return values;
}

// The error of the weights after all steps, relative to what the steps changed.
double error_of(const json& golden, size_t index) {
  const json& matrix = golden["matrices"][index];
  const size_t rows = matrix["shape"][0], columns = matrix["shape"][1];
  nn::ParameterTable table;
  table.add({.name = "a", .shape = {rows, columns}, .decay = true, .product = nn::Product::kOutIn, .hidden = true});
  table.lay_out();
  const double rate = golden["options"]["lr"];
  Muon optimizer(table,
                 {.kind = OptimizerKind::kMuon,
                  .weight_decay = golden["options"]["weight_decay"],
                  .matrix_rate = 1,
                  .momentum = golden["options"]["momentum"],
                  .momentum_warmup = 0},
                 1);
  const std::vector<float> before = units(100 + index, rows * columns);
  std::vector<float> weights(table.size());
  std::copy(before.begin(), before.end(), weights.begin());
  for (size_t step = 0; step < golden["steps"]; ++step) {
    std::vector<float> gradient = units(200 + 10 * index + step, rows * columns);
    gradient.resize(table.size());
    static_cast<void>(optimizer.begin(1.0, rate, step + 1));
    for (size_t unit = 0; unit < optimizer.units().size(); ++unit) optimizer.update(unit, 0, weights, gradient);
  }
  double error = 0, change = 0;
  for (size_t i = 0; i < rows * columns; ++i) {
    const double expected = matrix["weights"][i];
    error += std::pow(static_cast<double>(weights[i]) - expected, 2);
    change += std::pow(expected - static_cast<double>(before[i]), 2);
  }
  return std::sqrt(error / change);
}

TEST(MuonGolden, FourUpdatesMatchPyTorch) {
  std::ifstream file(QUERN_GOLDEN_MUON_FILE);
  const json golden = json::parse(file);
  ASSERT_EQ(golden["matrices"].size(), 4u);
  test::for_each_target([&](const kernels::Target&) {
    for (size_t i = 0; i < golden["matrices"].size(); ++i) EXPECT_LT(error_of(golden, i), kTolerance) << i;
  });
}

}  // namespace
}  // namespace quern
