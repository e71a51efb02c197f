#include "kernels/rotary.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/support.h"

namespace quern::kernels {
namespace {

// Halves of 1 to 65 elements: complete vectors, and every kind of remainder.
constexpr std::array<size_t, 15> kHeadDims = {2, 4, 6, 8, 14, 16, 24, 30, 32, 34, 46, 64, 96, 128, 130};

constexpr size_t kPositions = 9;

// The usual table: position p turns pair j by p / 10000^(2j / d).
std::vector<float> table_of(size_t head_dim) {
  const size_t half = head_dim / 2;
  std::vector<float> table(kPositions * head_dim);
  for (size_t p = 0; p < kPositions; ++p) {
    for (size_t j = 0; j < half; ++j) {
      const double power = 2 * static_cast<double>(j) / static_cast<double>(head_dim);
      const double angle = static_cast<double>(p) * std::pow(10000.0, -power);
      table[p * head_dim + j] = static_cast<float>(std::cos(angle));
      table[p * head_dim + half + j] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

// Rows with a gap of `gap` floats after the heads.
struct Problem {
  size_t heads, head_dim, rows, first, gap;
  std::vector<float> table = table_of(head_dim);
  std::vector<float> x = test::normal(rows * stride(), 1);

  size_t stride() const { return heads * head_dim + gap; }
  RotaryShape shape() const { return {heads, head_dim, stride()}; }
};

enum class Direction { kForward, kBackward };

// rotate(x, y, cosine, sine) replaces the elements x and y of each pair.
template <typename T, typename Rotate>
void for_each_pair(const Problem& p, std::vector<T>& x, Rotate rotate) {
  const size_t half = p.head_dim / 2;
  for (size_t r = 0; r < p.rows; ++r) {
    const float* row = &p.table[(p.first + r) * p.head_dim];
    for (size_t h = 0; h < p.heads; ++h) {
      T* head = &x[r * p.stride() + h * p.head_dim];
      for (size_t j = 0; j < half; ++j) rotate(head[j], head[half + j], row[j], row[half + j]);
    }
  }
}

std::vector<float> twin(const Problem& p, Direction direction) {
  std::vector<float> out = p.x;
  for_each_pair(p, out, [&](float& x, float& y, float c, float s) {
    const float sine = direction == Direction::kForward ? s : -s;
    const float turned = std::fma(x, c, -(y * sine));
    y = std::fma(y, c, x * sine);
    x = turned;
  });
  return out;
}

std::vector<double> reference(const Problem& p, std::vector<double> values) {
  for_each_pair(p, values, [](double& x, double& y, double c, double s) {
    const double turned = x * c - y * s;
    y = y * c + x * s;
    x = turned;
  });
  return values;
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<float> run(const Problem& p, const std::vector<float>& values, Direction direction, size_t offset = 0) {
  const test::Placed table(p.table, offset / 2);
  test::Placed x(values, offset);
  (direction == Direction::kForward ? rotary_forward : rotary_backward)(p.shape(), table.data(), p.first, x.data(),
                                                                        p.rows);
  return x.copy();
}

template <typename Body>  // body(problem)
void for_each_problem(Body body) {
  for (const size_t head_dim : kHeadDims) {
    for (const size_t heads : {1, 3}) {
      for (const size_t rows : {1, 4}) {
        SCOPED_TRACE("head_dim " + std::to_string(head_dim) + ", heads " + std::to_string(heads) + ", rows " +
                     std::to_string(rows));
        body(Problem{heads, head_dim, rows, 5, heads == 1 ? size_t{0} : size_t{7}});
      }
    }
  }
}

// The gaps between rows are compared too: they must not change.
TEST(Rotary, MatchesTwins) {
  for_each_problem([](const Problem& p) {
    const std::vector<double> precise = reference(p, doubles(p.x));
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      const std::vector<float> exact = twin(p, direction);
      test::for_each_target([&](const Target& target) {
        for (const size_t offset : {0, 1, 5, 15}) {
          const std::vector<float> found = run(p, p.x, direction, offset);
          if (target.fma) {
            EXPECT_TRUE(test::same_bits(exact, found)) << "offset " << offset;
          }
          EXPECT_TRUE(test::close(exact, found, 1e-6));
          if (direction == Direction::kForward) {
            EXPECT_TRUE(test::close(precise, found, 1e-6));
          }
        }
      });
    }
  });
}

TEST(Rotary, BackwardInvertsForward) {
  for_each_problem([](const Problem& p) {
    test::for_each_target([&](const Target&) {
      const std::vector<float> there = run(p, p.x, Direction::kForward);
      EXPECT_TRUE(test::close(p.x, run(p, there, Direction::kBackward), 1e-6));
    });
  });
}

TEST(Rotary, BackwardMatchesFiniteDifferences) {
  for (const size_t head_dim : {2, 10, 32, 50}) {
    Problem p{2, head_dim, 2, 3, 0};
    const std::vector<float> dout = test::normal(p.x.size(), 2);
    std::vector<double> x = doubles(p.x);
    const auto loss = [&] {
      const std::vector<double> out = reference(p, x);
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * static_cast<double>(dout[i]);
      return sum;
    };
    std::vector<double> slopes;
    for (double& value : x) slopes.push_back(test::derivative(loss, value));
    test::for_each_target([&](const Target&) {
      EXPECT_TRUE(test::close(slopes, run(p, dout, Direction::kBackward), 2e-6)) << "head_dim " << head_dim;
    });
  }
}

TEST(Rotary, PositionZeroChangesNothing) {
  Problem p{3, 30, 1, 0, 2};
  test::for_each_target([&](const Target&) { EXPECT_TRUE(test::same_bits(p.x, run(p, p.x, Direction::kForward))); });
}

// A score depends on the distance of two positions only.
TEST(Rotary, ProductsDependOnTheDistance) {
  const size_t head_dim = 32;
  const std::vector<float> query = test::normal(head_dim, 1), key = test::normal(head_dim, 2);
  const auto product = [&](size_t at_query, size_t at_key) {
    const auto turned = [&](const std::vector<float>& x, size_t at) {
      return run(Problem{1, head_dim, 1, at, 0}, x, Direction::kForward);
    };
    const std::vector<float> q = turned(query, at_query), k = turned(key, at_key);
    double sum = 0;
    for (size_t j = 0; j < head_dim; ++j) sum += static_cast<double>(q[j]) * static_cast<double>(k[j]);
    return sum;
  };
  test::for_each_target([&](const Target&) {
    EXPECT_NEAR(product(3, 1), product(8, 6), 1e-5);
    EXPECT_GT(std::abs(product(3, 1) - product(8, 1)), 1e-2);
  });
}

TEST(Rotary, SplittingRowsAndHeadsIsBitIdentical) {
  const Problem p{4, 24, 6, 2, 5};
  test::for_each_target([&](const Target&) {
    std::vector<float> parts = p.x;
    for (const size_t r : {0, 1}) {
      for (const size_t h : {0, 2}) {
        const RotaryShape shape{2, p.head_dim, p.stride()};
        rotary_forward(shape, p.table.data(), p.first + 3 * r, &parts[3 * r * p.stride() + h * p.head_dim], 3);
      }
    }
    EXPECT_TRUE(test::same_bits(run(p, p.x, Direction::kForward), parts));
  });
}

TEST(Rotary, NanReachesOnlyItsPair) {
  Problem p{2, 30, 1, 4, 0};
  std::vector<float> sick = p.x;
  sick[30 + 9] = std::numeric_limits<float>::quiet_NaN();
  test::for_each_target([&](const Target&) {
    const std::vector<float> good = run(p, p.x, Direction::kForward), found = run(p, sick, Direction::kForward);
    for (size_t i = 0; i < found.size(); ++i) {
      if (i == 30 + 9 || i == 30 + 9 + 15) {
        EXPECT_TRUE(std::isnan(found[i])) << i;
      } else {
        EXPECT_EQ(found[i], good[i]) << i;
      }
    }
  });
}

TEST(Rotary, NoRowsTouchNothing) {
  test::for_each_target([&](const Target&) {
    rotary_forward({2, 16, 32}, nullptr, 0, nullptr, 0);
    rotary_backward({2, 16, 32}, nullptr, 0, nullptr, 0);
  });
}

}  // namespace
}  // namespace quern::kernels
