// RMS norm on {8, 16, 32} sequences of 64 tokens with 512 features, one thread, against the same reads and writes
// without arithmetic ("copy"). Forward alone saves nothing.
#include "kernels/rmsnorm.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/norm_traffic.h"
#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "kernels/types.h"

namespace quern::bench {
namespace {

constexpr size_t kFeatures = 512;

using Floats = AlignedBuffer<float>;
using kernels::DType;

// n normal values.
Floats normal(size_t n, unsigned seed) {
  Floats values(n);
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  for (float& value : values.span()) value = distribution(generator);
  return values;
}

// The arrays of one size, and the calls to time.
struct Workload {
  size_t rows;
  size_t n = rows * kFeatures;
  Floats x = normal(n, 1), dout = normal(n, 2), out = normal(n, 3), dx = normal(n, 4);
  Floats weight = normal(kFeatures, 5), dweight = normal(kFeatures, 6), reciprocal = normal(rows, 7);
  Floats saved = normal(n, 8);  // large enough for any format

  void forward(kernels::RmsnormSaved into) {
    kernels::rmsnorm_forward(x.data(), out.data(), into, rows, kFeatures, {.weight = weight.data()});
  }
  void both(DType type) {
    const kernels::RmsnormSaved into{saved.data(), type, reciprocal.data()};
    forward(into);
    kernels::rmsnorm_backward(
        {.saved = into, .weight = weight.data(), .dout = dout.data(), .dx = dx.data(), .dweight = dweight.data()}, rows,
        kFeatures);
  }
  char* bytes() { return reinterpret_cast<char*>(saved.data()); }
  void traffic_forward(size_t size) { traffic_norm_forward(x.data(), out.data(), bytes(), size, n); }
  void traffic_backward(size_t size) { traffic_norm_backward(bytes(), size, dout.data(), dx.data(), n); }
};

// The largest error of out and of dx (which held 0 before) in one row, against double precision.
double error_of_row(const Workload& w, size_t row) {
  const float* x = &w.x[row * kFeatures];
  const float* dout = &w.dout[row * kFeatures];
  double squares = 0, products = 0, error = 0;
  for (size_t c = 0; c < kFeatures; ++c) squares += static_cast<double>(x[c]) * x[c];
  const double reciprocal = 1 / std::sqrt(squares / kFeatures + kernels::RmsnormOptions().epsilon);
  for (size_t c = 0; c < kFeatures; ++c) {
    products += static_cast<double>(dout[c]) * w.weight[c] * x[c] * reciprocal / kFeatures;
  }
  for (size_t c = 0; c < kFeatures; ++c) {
    const double value = x[c] * reciprocal;
    const double dx = reciprocal * (static_cast<double>(dout[c]) * w.weight[c] - value * products);
    error = std::max(error, std::abs(w.out[row * kFeatures + c] - value * w.weight[c]));
    error = std::max(error, std::abs(w.dx[row * kFeatures + c] - dx));
  }
  return error;
}

// Runs both directions once and compares every 37th row. NaN fails as well.
void check(Context& context, const std::string& name, Workload& w, DType type) {
  std::fill_n(w.dx.data(), w.n, 0.0f);
  w.both(type);
  // The roundings of a normalized input up to 5, times a weight up to 4.
  const double tolerance = type == DType::kF32 ? 1e-4 : type == DType::kBF16 ? 20 * 0x1p-9 : 20 * 0x1p-12;
  for (size_t row = 0; row < w.rows; row += 37) {
    const double error = error_of_row(w, row);
    if (!(error < tolerance)) return context.wrong_answer(name, "row " + std::to_string(row) + " is off");
  }
}

// The first function is Quern's, the second the copy. `bytes` is the traffic per element.
void compare(Context& context, const Workload& w, const std::string& name, size_t bytes,
             const std::vector<std::function<void()>>& functions) {
  const std::string full = name + "/" + std::to_string(w.rows) + "x" + std::to_string(kFeatures);
  const double gigabytes = static_cast<double>(bytes * w.n) * 1e-9;
  const std::vector<double> time = best_times(context, functions);
  context.add(full, gigabytes / time[0], "GB/s", "copy", gigabytes / time[1], 0.7);
}

void bench_forward(Context& context, Workload& w) {
  const auto ours = [&] { w.forward({nullptr, DType::kF32, nullptr}); };
  compare(context, w, "rmsnorm/forward", 8, {ours, [&] { w.traffic_forward(0); }});  // x, out
}

void bench_both(Context& context, const std::string& name, Workload& w, DType type) {
  check(context, name, w, type);
  const size_t size = kernels::size_of(type);
  const auto copy = [&] { w.traffic_forward(size), w.traffic_backward(size); };
  // x, out, saved; saved, dout, dx read, dx written
  compare(context, w, name, 20 + 2 * size, {[&] { w.both(type); }, copy});
}

}  // namespace

void bench_rmsnorm(Context& context) {
  for (const size_t sequences : {8, 16, 32}) {
    Workload w{.rows = sequences * 64};
    bench_forward(context, w);
    bench_both(context, "rmsnorm/forward_backward", w, DType::kF32);
    bench_both(context, "rmsnorm/forward_backward_bf16", w, DType::kBF16);
    bench_both(context, "rmsnorm/forward_backward_f16", w, DType::kF16);
  }
}

}  // namespace quern::bench
