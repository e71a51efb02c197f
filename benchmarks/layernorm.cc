// LayerNorm on {8, 16, 32} sequences of 64 tokens with 512 features, one thread: forward, and forward with backward,
// against the same reads and writes without arithmetic ("copy") and against oneDNN.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "kernels/layernorm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/layernorm.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quern::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The traffic of forward: reads x, writes out. n is a multiple of 64.
void TrafficForward(const float* HWY_RESTRICT x, float* HWY_RESTRICT out, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += 2 * N) {
    const auto a = hn::Load(d, x + i), b = hn::Load(d, x + i + N);
    hn::Store(a, d, out + i);
    hn::Store(b, d, out + i + N);
  }
}

// The traffic of backward: reads x, dout and dx, writes dx. Or-ing is how the reads are used.
void TrafficBackward(const float* HWY_RESTRICT x, const float* HWY_RESTRICT dout, float* HWY_RESTRICT dx, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += 2 * N) {
    const auto a = hn::Or(hn::Or(hn::Load(d, x + i), hn::Load(d, dout + i)), hn::Load(d, dx + i));
    const auto b = hn::Or(hn::Or(hn::Load(d, x + i + N), hn::Load(d, dout + i + N)), hn::Load(d, dx + i + N));
    hn::Store(a, d, dx + i);
    hn::Store(b, d, dx + i + N);
  }
}

}  // namespace quern::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::bench {
namespace {

HWY_EXPORT(TrafficForward);
HWY_EXPORT(TrafficBackward);

constexpr size_t kFeatures = 512;

using Floats = AlignedBuffer<float>;

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

  void forward() {
    kernels::layernorm_forward(x.data(), weight.data(), bias.data(), out.data(), {mean.data(), reciprocal.data()}, rows,
                               kFeatures);
  }
  void backward() {
    kernels::layernorm_backward({.x = x.data(),
                                 .weight = weight.data(),
                                 .dout = dout.data(),
                                 .stats = {mean.data(), reciprocal.data()},
                                 .dx = dx.data(),
                                 .dweight = dweight.data(),
                                 .dbias = dbias.data()},
                                rows, kFeatures);
  }
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
void check(Context& context, const std::string& name, Workload& w) {
  std::fill_n(w.dx.data(), w.n, 0.0f);
  w.forward();
  w.backward();
  for (size_t row = 0; row < w.rows; row += 37) {
    const double error = error_of_row(w, row);
    if (!(error < 1e-4)) return context.wrong_answer(name, "row " + std::to_string(row) + " is off");
  }
}

void bench_rows(Context& context, size_t rows) {
  const std::string size = std::to_string(rows) + "x" + std::to_string(kFeatures);
  Workload w{.rows = rows};
  check(context, "layernorm/forward_backward/" + size, w);
  const Peers* peers = context.peers();
  void* handle = peers ? peers->layernorm_create(rows, kFeatures) : nullptr;
  const auto traffic_forward = [&] { HWY_DYNAMIC_DISPATCH(TrafficForward)(w.x.data(), w.out.data(), w.n); };
  const auto traffic_backward = [&] {
    HWY_DYNAMIC_DISPATCH(TrafficBackward)(w.x.data(), w.dout.data(), w.dx.data(), w.n);
  };
  const auto compare = [&](const std::string& name, double arrays, std::vector<std::function<void()>> functions) {
    const double gigabytes = arrays * static_cast<double>(w.n * sizeof(float)) * 1e-9;
    const std::vector<double> time = best_times(context, functions);
    context.add(name, gigabytes / time[0], "GB/s", "copy", gigabytes / time[1], 0.7);
    if (time.size() > 2) context.add(name, gigabytes / time[0], "GB/s", "onednn", gigabytes / time[2], 1.0);
  };
  std::vector<std::function<void()>> forward = {[&] { w.forward(); }, traffic_forward};
  std::vector<std::function<void()>> both = {[&] { w.forward(), w.backward(); },
                                             [&] { traffic_forward(), traffic_backward(); }};
  if (handle != nullptr) {
    forward.push_back([&] { w.peer_forward(*peers, handle); });
    both.push_back([&] { w.peer_forward(*peers, handle), w.peer_backward(*peers, handle); });
  }
  compare("layernorm/forward/" + size, 2, forward);        // x, out
  compare("layernorm/forward_backward/" + size, 6, both);  // and x, dout, dx read, dx written
  if (handle != nullptr) peers->layernorm_destroy(handle);
}

}  // namespace

void bench_layernorm(Context& context) {
  for (const size_t sequences : {8, 16, 32}) bench_rows(context, sequences * 64);
}

}  // namespace quern::bench
#endif  // HWY_ONCE
