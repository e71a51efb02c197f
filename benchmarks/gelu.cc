// GELU's output and gradient together, as backward computes them from a saved input of any format, against the same
// reads and writes without arithmetic. One thread; the hidden layer of one sequence of preset tiny and of preset small.
// No bar: an exponential and two divisions per element cost more than the traffic if the data fits in a cache.
#include "kernels/gelu.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "benchmarks/traffic.h"
#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "kernels/convert.h"

namespace quern::bench {
namespace {

using kernels::DType;

struct Workload {
  size_t n;
  AlignedBuffer<float> x{n}, gradient{n}, out{n};
  AlignedBuffer<kernels::Half> half{n};

  const void* input(DType type) {
    if (type == DType::kF32) return x.data();
    kernels::narrow(type, x.data(), half.data(), n);
    return half.data();
  }
};

// x from -4 to 4; the input's rounding is below 4 / 2^8, and neither the function nor its derivative is steeper
// than 1.2.
void check(Context& context, const std::string& name, Workload& w, DType type) {
  for (size_t i = 0; i < w.n; ++i) w.x[i] = static_cast<float>(i % 8000) * 1e-3f - 4.0f;
  std::fill_n(w.gradient.data(), w.n, 1.0f);
  kernels::gelu_forward_backward(w.input(type), type, w.gradient.data(), w.out.data(), w.n);
  const double tolerance = type == DType::kF32 ? 1e-5 : 4 * 0x1p-8;
  for (size_t i = 0; i < w.n; i += 37) {
    const double x = w.x[i], u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), t = std::tanh(u);
    const double slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    const double expected = x / 2 * (1 + t), derivative = (1 + t) / 2 + x / 2 * (1 - t * t) * slope;
    const double error = std::max(std::abs(w.out[i] - expected), std::abs(w.gradient[i] - derivative));
    if (!(error < tolerance)) return context.wrong_answer(name, "x = " + std::to_string(x) + " is off");
  }
}

void bench_type(Context& context, const std::string& family, size_t n, DType type) {
  const std::string name = family + "/" + std::to_string(n);
  Workload w{.n = n};
  check(context, name, w, type);
  // From 8 on the derivative is 1, so repeated multiplication does not change the gradient.
  for (size_t i = 0; i < n; ++i) w.x[i] = 8.0f + static_cast<float>(i % 1000) * 1e-3f;
  const void* input = w.input(type);
  const int32_t zero = 0;
  const auto ours = [&] { kernels::gelu_forward_backward(input, type, w.gradient.data(), w.out.data(), n); };
  const auto traffic = [&] {
    if (type == DType::kF32) return traffic_gelu(w.x.data(), w.gradient.data(), w.out.data(), n, zero);
    traffic_gelu_half(w.half.data(), w.gradient.data(), w.out.data(), n, zero);
  };
  const std::vector<double> times = best_times(context, {ours, traffic});
  const double gigabytes = static_cast<double>((12 + kernels::size_of(type)) * n) * 1e-9;  // input, gradient twice, out
  context.add(name, gigabytes / times[0], "GB/s", "traffic", gigabytes / times[1]);
}

}  // namespace

void bench_gelu(Context& context) {
  for (const size_t n : {128 * 512, 256 * 1536}) {
    bench_type(context, "gelu", n, DType::kF32);
    bench_type(context, "gelu_bf16", n, DType::kBF16);
    bench_type(context, "gelu_f16", n, DType::kF16);
  }
}

}  // namespace quern::bench
