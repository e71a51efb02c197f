// LayerNorm on {8, 16, 32} sequences of 64 tokens with 512 features, one thread, against the same reads and writes
// without arithmetic ("copy") and against oneDNN. Forward alone saves nothing, and reads and writes the same as
// oneDNN's. With backward it saves the normalised input, which oneDNN recomputes: more traffic for Quern; the ratio is
// of times.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/norm_traffic.h"
#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "kernels/layernorm.h"
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
  Floats weight = normal(kFeatures, 5), bias = normal(kFeatures, 6);
  Floats dweight = normal(kFeatures, 7), dbias = normal(kFeatures, 8);
  Floats mean = normal(rows, 9), reciprocal = normal(rows, 10);  // variance, for oneDNN
  Floats saved = normal(n, 11);                                  // large enough for any format

  void forward(kernels::LayernormSaved into) {
    kernels::layernorm_forward(x.data(), weight.data(), bias.data(), out.data(), into, rows, kFeatures);
  }
  void both(DType type) {
    const kernels::LayernormSaved into{saved.data(), type, reciprocal.data()};
    forward(into);
    kernels::layernorm_backward({.saved = into,
                                 .weight = weight.data(),
                                 .dout = dout.data(),
                                 .dx = dx.data(),
                                 .dweight = dweight.data(),
                                 .dbias = dbias.data()},
                                rows, kFeatures);
  }
  char* bytes() { return reinterpret_cast<char*>(saved.data()); }
  void traffic_forward(size_t size) { traffic_norm_forward(x.data(), out.data(), bytes(), size, n); }
  void traffic_backward(size_t size) { traffic_norm_backward(bytes(), size, dout.data(), dx.data(), n); }
  void peer_forward(const Peers& peers, void* handle) {
    peers.layernorm_forward(handle, x.data(), weight.data(), bias.data(), out.data(), mean.data(), reciprocal.data());
  }
  void peer_backward(const Peers& peers, void* handle) {
    peers.layernorm_backward(handle, x.data(), weight.data(), bias.data(), dout.data(), mean.data(), reciprocal.data(),
                             dx.data(), dweight.data(), dbias.data());
  }
};

struct Moments {
  double mean = 0, reciprocal = 0;
};

Moments moments(const float* x) {
  double sum = 0, squares = 0;
  for (size_t c = 0; c < kFeatures; ++c) sum += x[c];
  const double mean = sum / kFeatures;
  for (size_t c = 0; c < kFeatures; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {mean, 1 / std::sqrt(squares / kFeatures + kernels::kLayernormEpsilon)};
}

// The largest error of out and of dx (which held 0 before) in one row, against double precision.
double error_of_row(const Workload& w, size_t row) {
  const float* x = &w.x[row * kFeatures];
  const float* dout = &w.dout[row * kFeatures];
  const Moments m = moments(x);
  double sum = 0, products = 0, error = 0;
  for (size_t c = 0; c < kFeatures; ++c) {
    const double gradient = static_cast<double>(dout[c]) * w.weight[c];
    sum += gradient / kFeatures;
    products += gradient * (x[c] - m.mean) * m.reciprocal / kFeatures;
  }
  for (size_t c = 0; c < kFeatures; ++c) {
    const double normal = (x[c] - m.mean) * m.reciprocal;
    const double dx = m.reciprocal * (static_cast<double>(dout[c]) * w.weight[c] - sum - normal * products);
    error = std::max(error, std::abs(w.out[row * kFeatures + c] - (normal * w.weight[c] + w.bias[c])));
    error = std::max(error, std::abs(w.dx[row * kFeatures + c] - dx));
  }
  return error;
}

// Runs both directions once and compares every 37th row. NaN fails as well.
void check(Context& context, const std::string& name, Workload& w, DType type) {
  std::fill_n(w.dx.data(), w.n, 0.0f);
  w.both(type);
  // The roundings of a normalised input up to 5, times a weight up to 4.
  const double tolerance = type == DType::kF32 ? 1e-4 : type == DType::kBF16 ? 20 * 0x1p-9 : 20 * 0x1p-12;
  for (size_t row = 0; row < w.rows; row += 37) {
    const double error = error_of_row(w, row);
    if (!(error < tolerance)) return context.wrong_answer(name, "row " + std::to_string(row) + " is off");
  }
}

// The first function is Quern's, the second the copy, the third, if any, oneDNN's. `bytes` is Quern's traffic per
// element.
void compare(Context& context, const Workload& w, const std::string& name, size_t bytes,
             const std::vector<std::function<void()>>& functions) {
  const std::string full = name + "/" + std::to_string(w.rows) + "x" + std::to_string(kFeatures);
  const double gigabytes = static_cast<double>(bytes * w.n) * 1e-9;
  const std::vector<double> time = best_times(context, functions);
  context.add(full, gigabytes / time[0], "GB/s", "copy", gigabytes / time[1], 0.7);
  if (time.size() > 2) context.add(full, gigabytes / time[0], "GB/s", "onednn", gigabytes / time[2], 1.0);
}

void bench_forward(Context& context, Workload& w, const Peers* peers, void* handle) {
  std::vector<std::function<void()>> functions = {[&] {
                                                    w.forward({nullptr, DType::kF32, nullptr});
                                                  },
                                                  [&] { w.traffic_forward(0); }};
  if (handle != nullptr) functions.emplace_back([&, handle] { w.peer_forward(*peers, handle); });
  compare(context, w, "layernorm/forward", 8, functions);  // x, out
}

void bench_both(Context& context, const std::string& name, Workload& w, DType type, const Peers* peers, void* handle) {
  check(context, name, w, type);
  const size_t size = kernels::size_of(type);
  std::vector<std::function<void()>> functions = {[&] { w.both(type); },
                                                  [&] { w.traffic_forward(size), w.traffic_backward(size); }};
  if (handle != nullptr) {
    functions.emplace_back([&, handle] { w.peer_forward(*peers, handle), w.peer_backward(*peers, handle); });
  }
  compare(context, w, name, 20 + 2 * size, functions);  // x, out, saved; saved, dout, dx read, dx written
}

void bench_rows(Context& context, size_t rows) {
  Workload w{.rows = rows};
  const Peers* peers = context.peers();
  void* handle = peers ? peers->layernorm_create(rows, kFeatures) : nullptr;
  bench_forward(context, w, peers, handle);
  bench_both(context, "layernorm/forward_backward", w, DType::kF32, peers, handle);
  bench_both(context, "layernorm/forward_backward_bf16", w, DType::kBF16, peers, handle);
  bench_both(context, "layernorm/forward_backward_f16", w, DType::kF16, peers, handle);
  if (handle != nullptr) peers->layernorm_destroy(handle);
}

}  // namespace

void bench_layernorm(Context& context) {
  for (const size_t sequences : {8, 16, 32}) bench_rows(context, sequences * 64);
}

}  // namespace quern::bench
