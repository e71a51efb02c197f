#include "kernels/vector_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "benchmarks/traffic.h"
#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "core/measuring.h"
#include "kernels/convert.h"

namespace quern::bench {
namespace {

constexpr double kBar = 0.8;

// GB/s of `ours` against `traffic`; both move `bytes`.
void compare(Context& context, const std::string& name, size_t n, double bytes, const std::function<void()>& ours,
             const std::function<void()>& traffic) {
  const std::vector<double> times = best_times(context, {ours, traffic});
  context.add(name + "/" + std::to_string(n), bytes / times[0] * 1e-9, "GB/s", "traffic", bytes / times[1] * 1e-9,
              kBar);
}

void check(Context& context, const std::string& name, double expected, double found, double tolerance) {
  if (!(std::abs(expected - found) <= tolerance * std::abs(expected))) {
    context.wrong_answer(name, "expected " + std::to_string(expected) + ", found " + std::to_string(found));
  }
}

double sum_of(AlignedBuffer<float>& x) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]);
  return sum;
}

void bench_sums(Context& context, AlignedBuffer<float>& x) {
  const size_t n = x.size();
  const auto bytes = [n](double per_element) { return per_element * static_cast<double>(n); };
  AlignedBuffer<float> sum(n);
  std::fill(sum.span().begin(), sum.span().end(), 1.0f);
  const int32_t zero = 0;
  compare(
      context, "accumulate", n, bytes(12), [&] { kernels::accumulate(sum.data(), x.data(), n); },
      [&] { traffic_accumulate(sum.data(), x.data(), n, zero); });
  std::fill(sum.data(), sum.data() + n, 1.0f);
  kernels::accumulate(sum.data(), x.data(), n);
  check(context, "accumulate", sum_of(x) + static_cast<double>(n), sum_of(sum), 1e-6);

  // A factor of -1 leaves the values in range after any number of calls.
  const double before = sum_of(sum);
  compare(
      context, "scale", n, bytes(8), [&] { kernels::scale(sum.data(), -1.0f, n); },
      [&] { traffic_scale(sum.data(), n, zero); });
  check(context, "scale", std::abs(before), std::abs(sum_of(sum)), 1e-12);
}

void bench_reads(Context& context, AlignedBuffer<float>& x) {
  const size_t n = x.size();
  const double bytes = 4.0 * static_cast<double>(n);
  double norm = 0, expected = 0;
  bool finite = false;
  compare(
      context, "norm", n, bytes, [&] { norm = kernels::squared_norm(x.data(), n); },
      [&] { do_not_optimize(traffic_read(x.data(), n)); });
  for (size_t i = 0; i < n; ++i) expected += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  check(context, "norm", expected, norm, 1e-5);
  compare(
      context, "finite", n, bytes, [&] { finite = kernels::all_finite(x.data(), n); },
      [&] { do_not_optimize(traffic_read(x.data(), n)); });
  if (!finite) context.wrong_answer("finite", "finite values were reported as not finite");
}

using kernels::DType;

// `step`: the largest relative error of rounding to the format and back.
void bench_format(Context& context, AlignedBuffer<float>& x, const std::string& format, DType type, float step) {
  const size_t n = x.size();
  const double bytes = 6.0 * static_cast<double>(n);
  AlignedBuffer<kernels::Half> half(n, Fill::kZero);
  AlignedBuffer<float> back(n, Fill::kZero);
  const int32_t zero = 0;
  compare(
      context, "convert/" + format, n, bytes, [&] { kernels::narrow(type, x.data(), half.data(), n); },
      [&] { traffic_narrow(x.data(), half.data(), n); });
  kernels::narrow(type, x.data(), half.data(), n);
  compare(
      context, "convert/from_" + format, n, bytes, [&] { kernels::widen(type, half.data(), back.data(), n); },
      [&] { traffic_widen(half.data(), back.data(), n); });
  kernels::widen(type, half.data(), back.data(), n);
  // In place from now on: values that are rounded once do not change again.
  compare(
      context, "convert/keep_" + format, n, bytes + 4.0 * static_cast<double>(n),
      [&] { kernels::save_rounded(back.data(), half.data(), type, n); },
      [&] { traffic_keep(back.data(), half.data(), n, zero); });
  for (size_t i = 0; i < n; ++i) {
    if (std::abs(back[i] - x[i]) > step * std::abs(x[i]))
      return context.wrong_answer("convert/" + format, "rounded too far");
  }
}

}  // namespace

void bench_vector_ops(Context& context) {
  AlignedBuffer<float> x(10'000'000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919) % 10007) * 1e-4f + 0.01f;
  bench_sums(context, x);
  bench_reads(context, x);
  bench_format(context, x, "bf16", DType::kBF16, 0x1p-8f);
  bench_format(context, x, "f16", DType::kF16, 0x1p-11f);
}

}  // namespace quern::bench
