// Every matrix product of the three training presets at 256 rows, and square ones, against OpenBLAS on one thread; and
// the same products with an operand stored as bf16 against fp32.
#include "kernels/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "kernels/convert.h"

namespace quern::bench {
namespace {

using kernels::DType;
using kernels::Gemm;
using kernels::Half;
using kernels::Layout;

constexpr double kGeomeanBar = 1.0;
constexpr double kShapeBar = 0.90;
constexpr double kHalfBar = 0.95;

struct Shape {
  Layout layout;
  size_t M, N, K;
};

std::string name_of(const Shape& s, const char* kind = "") {
  const char* layouts[] = {"nn", "nt", "tn"};
  return fmt::format("gemm/{}{}/{}x{}x{}", kind, layouts[static_cast<int>(s.layout)], s.M, s.N, s.K);
}

// y = x W with W (in, out): forward, gradient of x, gradient of W.
void add_linear(std::vector<Shape>& shapes, size_t rows, size_t in, size_t out) {
  shapes.push_back({Layout::kNN, rows, out, in});
  shapes.push_back({Layout::kNT, rows, in, out});
  shapes.push_back({Layout::kTN, in, out, rows});
}

// logits = x E^T with the tied embedding E (V, C), and its two gradients.
void add_output(std::vector<Shape>& shapes, size_t rows, size_t C, size_t V) {
  shapes.push_back({Layout::kNT, rows, V, C});
  shapes.push_back({Layout::kNN, rows, C, V});
  shapes.push_back({Layout::kTN, V, C, rows});
}

std::vector<Shape> training_shapes() {
  constexpr size_t kRows = 256;
  std::vector<Shape> shapes;
  for (const auto& [C, V] : {std::pair<size_t, size_t>{128, 96}, {384, 96}, {768, 50304}}) {
    add_linear(shapes, kRows, C, 3 * C);
    add_linear(shapes, kRows, C, C);
    add_linear(shapes, kRows, C, 4 * C);
    add_linear(shapes, kRows, 4 * C, C);
    add_output(shapes, kRows, C, V);
  }
  return shapes;
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes = training_shapes();
  for (const size_t n : {128, 256, 512, 1024}) {
    for (const Layout layout : {Layout::kNN, Layout::kNT, Layout::kTN}) shapes.push_back({layout, n, n, n});
  }
  return shapes;
}

class Problem {
 public:
  explicit Problem(const Shape& shape)
      : shape_(shape), a_(shape.M * shape.K), b_(shape.K * shape.N), c_(shape.M * shape.N) {
    std::minstd_rand random(1);
    for (float& x : a_.span()) x = static_cast<float>(random() % 2001) * 1e-3f - 1.0f;
    for (float& x : b_.span()) x = static_cast<float>(random() % 2001) * 1e-3f - 1.0f;
  }

  void ours() {
    kernels::gemm({.layout = shape_.layout,
                   .M = shape_.M,
                   .N = shape_.N,
                   .K = shape_.K,
                   .a = {a_.data(), a_stride()},
                   .b = {b_.data(), b_stride()},
                   .c = c_.data(),
                   .c_stride = shape_.N},
                  scratch_.span());
  }
  void theirs(const Peers& peers) {
    peers.sgemm(shape_.layout == Layout::kTN, shape_.layout == Layout::kNT, shape_.M, shape_.N, shape_.K, a_.data(),
                a_stride(), b_.data(), b_stride(), c_.data(), shape_.N);
  }
  void clear() { std::fill(c_.span().begin(), c_.span().end(), std::nanf("")); }

  // The largest error of 256 elements spread over C, against sums in double precision.
  double error() const {
    double worst = 0;
    const size_t count = shape_.M * shape_.N;
    for (size_t e = 0; e < count; e += std::max<size_t>(1, count / 256)) {
      const size_t i = e / shape_.N, j = e % shape_.N;
      double sum = 0;
      for (size_t k = 0; k < shape_.K; ++k) {
        const size_t a = shape_.layout == Layout::kTN ? k * shape_.M + i : i * shape_.K + k;
        const size_t b = shape_.layout == Layout::kNT ? j * shape_.K + k : k * shape_.N + j;
        sum += static_cast<double>(a_.data()[a]) * static_cast<double>(b_.data()[b]);
      }
      const double error = std::abs(sum - static_cast<double>(c_.data()[e]));
      worst = error <= worst ? worst : error;  // a NaN is not overwritten
    }
    return worst;
  }
  // A chain of K roundings of sums of up to K products below 1.
  double tolerance() const { return 1e-4 + 1e-7 * static_cast<double>(shape_.K); }
  double gflop() const {
    return 2e-9 * static_cast<double>(shape_.M) * static_cast<double>(shape_.N) * static_cast<double>(shape_.K);
  }

 private:
  size_t a_stride() const { return shape_.layout == Layout::kTN ? shape_.M : shape_.K; }
  size_t b_stride() const { return shape_.layout == Layout::kNT ? shape_.K : shape_.N; }

  Shape shape_;
  AlignedBuffer<float> a_, b_, c_;
  AlignedBuffer<float> scratch_{kernels::kGemmScratch};
};

// The operand that a training step stores as bf16: packed weights, or the activations A in A^T B. The values are bf16
// numbers, so that the product is bit-identical to the fp32 product.
class HalfProblem {
 public:
  explicit HalfProblem(const Shape& shape)
      : shape_(shape), a_(shape.M * shape.K), c_(shape.M * shape.N), c_half_(shape.M * shape.N) {
    std::minstd_rand random(1);
    AlignedBuffer<float> b(shape.K * shape.N);
    for (float& x : a_.span()) x = static_cast<float>(random() % 257) / 128 - 1.0f;
    for (float& x : b.span()) x = static_cast<float>(random() % 257) / 128 - 1.0f;
    if (shape.layout == Layout::kTN) {
      b_ = std::move(b);
      a_half_ = AlignedBuffer<Half>(a_.size());
      kernels::to_bf16(a_.data(), a_half_.data(), a_.size());
    } else {
      b_ = AlignedBuffer<float>(kernels::packed_size(shape.K, shape.N));
      b_half_ = AlignedBuffer<Half>(b_.size());
      const kernels::Operand whole{b.data(), shape.layout == Layout::kNT ? shape.K : shape.N};
      kernels::pack_b(shape.layout, whole, shape.K, shape.N, b_.data());
      kernels::pack_b(shape.layout, whole, shape.K, shape.N, b_half_.data(), DType::kBF16);
    }
  }

  void wide() {
    Gemm gemm = common(c_);
    gemm.a.data = a_.data();
    if (shape_.layout != Layout::kTN) gemm.packed_b = b_.data();
    kernels::gemm(gemm, scratch_.span());
  }
  void half() {
    Gemm gemm = common(c_half_);
    gemm.a.data = a_.data();
    if (shape_.layout == Layout::kTN) {
      gemm.a = {a_half_.data(), gemm.a.stride, DType::kBF16};
    } else {
      gemm.packed_b = b_half_.data();
      gemm.packed_type = DType::kBF16;
    }
    kernels::gemm(gemm, scratch_.span());
  }
  bool same() const { return std::memcmp(c_.data(), c_half_.data(), c_.size() * sizeof(float)) == 0; }
  double gflop() const {
    return 2e-9 * static_cast<double>(shape_.M) * static_cast<double>(shape_.N) * static_cast<double>(shape_.K);
  }

 private:
  Gemm common(AlignedBuffer<float>& c) {
    return {.layout = shape_.layout,
            .M = shape_.M,
            .N = shape_.N,
            .K = shape_.K,
            .a = {nullptr, shape_.layout == Layout::kTN ? shape_.M : shape_.K},
            .b = {shape_.layout == Layout::kTN ? b_.data() : nullptr, shape_.N},
            .c = c.data(),
            .c_stride = shape_.N};
  }

  Shape shape_;
  AlignedBuffer<float> a_, b_, c_, c_half_;  // b_ packed, except for A^T B
  AlignedBuffer<Half> a_half_, b_half_;
  AlignedBuffer<float> scratch_{kernels::kGemmScratch};
};

void bench_half(Context& context) {
  for (const Shape& shape : training_shapes()) {
    const std::string name = name_of(shape, "bf16/");
    if (!context.wants(name)) continue;
    HalfProblem problem(shape);
    problem.wide();
    problem.half();
    if (!problem.same()) context.wrong_answer(name, "not bit-identical to fp32");
    const std::vector<double> seconds = best_times(context, {[&] { problem.half(); }, [&] { problem.wide(); }}, 0.3, 7);
    context.add(name, problem.gflop() / seconds[0], "GFLOPS", "fp32", problem.gflop() / seconds[1], kHalfBar);
  }
}

void bench_wide(Context& context) {
  double log_ours = 0, log_theirs = 0, log_peak = 0;
  size_t count = 0;
  for (const Shape& shape : all_shapes()) {
    const std::string name = name_of(shape);
    if (!context.wants(name) && !context.wants("gemm/geomean")) continue;
    Problem problem(shape);
    problem.clear();
    problem.ours();
    if (!(problem.error() < problem.tolerance())) context.wrong_answer(name, fmt::format("error {}", problem.error()));
    std::vector<std::function<void()>> functions = {[&] { problem.ours(); }};
    if (context.peers() != nullptr) functions.emplace_back([&] { problem.theirs(*context.peers()); });
    const std::vector<double> seconds = best_times(context, functions, 0.3, 7);
    const double ours = problem.gflop() / seconds[0];
    if (context.peers() != nullptr) {
      const double theirs = problem.gflop() / seconds[1];
      context.add(name, ours, "GFLOPS", "openblas", theirs, kShapeBar);
      log_theirs += std::log(theirs);
    } else {
      context.add(name, ours, "GFLOPS", "fma peak", context.machine().fma_peak_one_gflops);
    }
    log_ours += std::log(ours);
    log_peak += std::log(context.machine().fma_peak_one_gflops);
    ++count;
  }
  if (count == 0) return;
  const auto mean = [count](double sum) { return std::exp(sum / static_cast<double>(count)); };
  context.add("gemm/geomean", mean(log_ours), "GFLOPS", "fma peak", mean(log_peak));
  if (context.peers() != nullptr) {
    context.add("gemm/geomean", mean(log_ours), "GFLOPS", "openblas", mean(log_theirs), kGeomeanBar);
  }
}

}  // namespace

void bench_gemm(Context& context) {
  bench_wide(context);
  bench_half(context);
}

}  // namespace quern::bench
