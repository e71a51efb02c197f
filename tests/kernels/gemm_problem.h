// Products to try: sizes at every edge, operands off alignment, and their twins.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "support/support.h"

namespace quern::kernels {

using test::Placed;

inline constexpr float kUntouched = 12345.0f;

struct Size {
  size_t M, N, K;
};

// Every edge of the tiles (6 and 8 rows, 8 to 48 columns), of vectors, and of the blocks of depth and rows; products of
// several panels and groups that tiles fetch ahead.
inline const std::vector<Size> kSizes = {{1, 1, 1},     {2, 3, 5},     {6, 16, 8},    {7, 17, 9},    {8, 48, 16},
                                         {9, 49, 31},   {13, 50, 33},  {1, 100, 64},  {33, 100, 17}, {65, 7, 40},
                                         {20, 33, 520}, {16, 96, 400}, {270, 20, 30}, {300, 51, 7},  {5, 200, 770},
                                         {70, 112, 60}, {71, 150, 90}, {40, 100, 800}};

inline constexpr Layout kLayouts[] = {Layout::kNN, Layout::kNT, Layout::kTN};

inline std::vector<float>& scratch() {
  static std::vector<float> values(kGemmScratch);
  return values;
}

// A problem with strides larger than the rows, operands `offset` floats off alignment, and C's gaps marked.
class Problem {
 public:
  Problem(Layout layout, Size size, size_t offset = 0, unsigned seed = 1)
      : layout_(layout),
        size_(size),
        a_cols_(layout == Layout::kTN ? size.M : size.K),
        b_cols_(layout == Layout::kNT ? size.K : size.N),
        a_(test::normal((layout == Layout::kTN ? size.K : size.M) * (a_cols_ + 3), seed), offset),
        b_(test::normal((layout == Layout::kNT ? size.N : size.K) * (b_cols_ + 1), seed + 1), offset),
        c_(size.M * c_stride(), kUntouched, offset),
        old_(test::normal(size.M * size.N, seed + 2)) {}

  size_t c_stride() const { return size_.N + 2; }
  float a(size_t i, size_t k) const {
    return layout_ == Layout::kTN ? a_.data()[k * (a_cols_ + 3) + i] : a_.data()[i * (a_cols_ + 3) + k];
  }
  float b(size_t k, size_t j) const {
    return layout_ == Layout::kNT ? b_.data()[j * (b_cols_ + 1) + k] : b_.data()[k * (b_cols_ + 1) + j];
  }
  float old(size_t i, size_t j) const { return old_[i * size_.N + j]; }

  Gemm args(bool add = false) {
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < size_.N; ++j) c_[i * c_stride() + j] = add ? old(i, j) : std::nanf("");
    }
    return {.layout = layout_,
            .M = size_.M,
            .N = size_.N,
            .K = size_.K,
            .a = {a_.data(), a_cols_ + 3},
            .b = {b_.data(), b_cols_ + 1},
            .c = c_.data(),
            .c_stride = c_stride(),
            .add = add};
  }

  // C without its gaps, which must be as they were.
  std::vector<float> result() {
    std::vector<float> values;
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < c_stride(); ++j) {
        const float value = c_[i * c_stride() + j];
        if (j < size_.N) {
          values.push_back(value);
        } else {
          EXPECT_EQ(value, kUntouched) << "row " << i << ", column " << j << " lies outside C";
        }
      }
    }
    return values;
  }

  // One chain of fused multiply-adds per element, over k in order: the contract of gemm.h.
  std::vector<float> twin(bool add) const {
    std::vector<float> values;
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < size_.N; ++j) {
        float sum = add ? old(i, j) : 0.0f;
        for (size_t k = 0; k < size_.K; ++k) sum = std::fma(a(i, k), b(k, j), sum);
        values.push_back(sum);
      }
    }
    return values;
  }

  std::vector<double> reference(bool add) const {
    std::vector<double> values;
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < size_.N; ++j) {
        double sum = add ? old(i, j) : 0.0;
        for (size_t k = 0; k < size_.K; ++k) sum += static_cast<double>(a(i, k)) * b(k, j);
        values.push_back(sum);
      }
    }
    return values;
  }

  Placed& a_values() { return a_; }
  Placed& b_values() { return b_; }

 private:
  Layout layout_;
  Size size_;
  size_t a_cols_, b_cols_;
  Placed a_, b_, c_;
  std::vector<float> old_;
};

inline std::string describe(Layout layout, Size s) {
  const char* names[] = {"NN ", "NT ", "TN "};
  return names[static_cast<int>(layout)] + std::to_string(s.M) + "x" + std::to_string(s.N) + "x" + std::to_string(s.K);
}

template <typename Body>
void for_each_problem(Body body) {
  for (const Layout layout : kLayouts) {
    for (const Size size : kSizes) {
      SCOPED_TRACE(describe(layout, size));
      body(layout, size);
    }
  }
}

}  // namespace quern::kernels
