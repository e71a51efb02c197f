#include "kernels/embedding.h"

#include "support/support.h"

namespace quern::kernels {
namespace {

constexpr size_t kVocabulary = 7;
constexpr size_t kPositions = 12;

// Repeats tokens on purpose: their gradients add up in one row.
const std::vector<int32_t> kTokens = {3, 0, 6, 3, 3, 1, 0, 6, 2};

struct Tables {
  std::vector<float> token, position;
};

Tables tables_of(size_t C, unsigned seed) {
  return {test::normal(kVocabulary * C, seed), test::normal(kPositions * C, seed + 1)};
}

TEST(Embedding, ForwardAddsTokenAndPosition) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {1, 2, 3, 15, 16, 17, 31, 33, 100, 127, 128, 129}) {
      for (const size_t offset : {0, 1, 7}) {
        const Tables tables = tables_of(C, 1);
        const test::Placed token(tables.token, offset), position(tables.position, offset / 2);
        for (const size_t first : {0, 3}) {
          std::vector<float> expected;
          for (size_t t = 0; t < kTokens.size(); ++t) {
            for (size_t c = 0; c < C; ++c) {
              expected.push_back(tables.token[static_cast<size_t>(kTokens[t]) * C + c] +
                                 tables.position[(first + t) * C + c]);
            }
          }
          test::Placed out(expected.size(), -7.0f, offset / 3);
          embedding_forward(kTokens.data(), token.data(), position.data(), out.data(), kTokens.size(), C, first);
          EXPECT_TRUE(test::same_bits(expected, out.span())) << "C = " << C << ", first " << first;
        }
      }
    }
  });
}

TEST(Embedding, BackwardAccumulatesInIncreasingTime) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {1, 2, 3, 15, 16, 17, 31, 33, 100, 127, 128, 129}) {
      const size_t first = 3;
      Tables expected = tables_of(C, 5);
      test::Placed token(expected.token, 1), position(expected.position, 2);
      const test::Placed dout(test::normal(kTokens.size() * C, 9), 3);
      for (size_t t = 0; t < kTokens.size(); ++t) {
        for (size_t c = 0; c < C; ++c) {
          expected.token[static_cast<size_t>(kTokens[t]) * C + c] += dout.data()[t * C + c];
          expected.position[(first + t) * C + c] += dout.data()[t * C + c];
        }
      }
      embedding_backward(kTokens.data(), dout.data(), token.data(), position.data(), kTokens.size(), C, first);
      EXPECT_TRUE(test::same_bits(expected.token, token.span())) << "C = " << C;
      EXPECT_TRUE(test::same_bits(expected.position, position.span())) << "C = " << C;
    }
  });
}

TEST(Embedding, EitherTableMayBeMissing) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {1, 3, 16, 17, 100, 129}) {
      const size_t first = 3, T = kTokens.size();
      const Tables tables = tables_of(C, 5);
      std::vector<float> expected;
      for (const int32_t token : kTokens) {
        const auto row = tables.token.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(token) * C);
        expected.insert(expected.end(), row, row + static_cast<ptrdiff_t>(C));
      }
      test::Placed out(expected.size(), -7.0f, 1);
      embedding_forward(kTokens.data(), tables.token.data(), nullptr, out.data(), T, C, first);
      EXPECT_TRUE(test::same_bits(expected, out.span())) << "C = " << C;

      const std::vector<float> dout = test::normal(T * C, 9);
      Tables both = tables, apart = tables;
      embedding_backward(kTokens.data(), dout.data(), both.token.data(), both.position.data(), T, C, first);
      embedding_backward(kTokens.data(), dout.data(), apart.token.data(), nullptr, T, C, first);
      embedding_backward(kTokens.data(), dout.data(), nullptr, apart.position.data(), T, C, first);
      EXPECT_TRUE(test::same_bits(both.token, apart.token)) << "C = " << C;
      EXPECT_TRUE(test::same_bits(both.position, apart.position)) << "C = " << C;
    }
  });
}

TEST(Embedding, BackwardMatchesFiniteDifferences) {
  const size_t C = 5, first = 2, T = kTokens.size();
  const std::vector<float> dout = test::normal(T * C, 11);
  const Tables tables = tables_of(C, 12);
  std::vector<double> token(tables.token.begin(), tables.token.end());
  std::vector<double> position(tables.position.begin(), tables.position.end());
  const auto loss = [&] {
    double sum = 0;
    for (size_t i = 0; i < T * C; ++i) {
      const size_t t = i / C, c = i % C;
      const double out = token[static_cast<size_t>(kTokens[t]) * C + c] + position[(first + t) * C + c];
      sum += static_cast<double>(dout[i]) * out;
    }
    return sum;
  };
  test::for_each_target([&](const Target&) {
    std::vector<float> dtoken(token.size(), 0.0f), dposition(position.size(), 0.0f);
    embedding_backward(kTokens.data(), dout.data(), dtoken.data(), dposition.data(), T, C, first);
    for (size_t i = 0; i < token.size(); ++i) EXPECT_NEAR(dtoken[i], test::derivative(loss, token[i]), 1e-6) << i;
    for (size_t i = 0; i < position.size(); ++i) {
      EXPECT_NEAR(dposition[i], test::derivative(loss, position[i]), 1e-6) << i;
    }
  });
}

TEST(Embedding, NoTokensTouchNothing) {
  test::for_each_target([&](const Target&) {
    embedding_forward(nullptr, nullptr, nullptr, nullptr, 0, 16);
    embedding_backward(nullptr, nullptr, nullptr, nullptr, 0, 16);
  });
}

}  // namespace
}  // namespace quern::kernels
