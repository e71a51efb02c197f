#include "kernels/adamw.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "benchmarks/traffic.h"
#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "core/measuring.h"

namespace quern::bench {
namespace {

constexpr double kBar = 0.80;

struct State {
  explicit State(size_t n) : p(n), gradient(n), m(n, Fill::kZero), v(n, Fill::kZero) {
    for (size_t i = 0; i < n; ++i) {
      p[i] = static_cast<float>((i * 7919) % 10007) * 1e-5f - 0.05f;
      gradient[i] = static_cast<float>((i * 104729) % 7919) * 1e-6f - 0.004f;
    }
  }
  AlignedBuffer<float> p, gradient, m, v;
  kernels::AdamW options;
};

// Each thread processes its own part `passes` times, so that the cost of starting it (about 50 us) is negligible; parts
// are independent.
void run_parts(size_t threads, size_t n, size_t passes, const std::function<void(size_t begin, size_t count)>& part) {
  const size_t width = (n / threads + 15) / 16 * 16;
  run_on_threads(threads, [&](size_t thread) {
    const size_t begin = std::min(n, thread * width);
    const size_t count = thread + 1 == threads ? n - begin : std::min(width, n - begin);
    for (size_t pass = 0; pass < passes; ++pass) part(begin, count);
  });
}

void update(State& s, size_t begin, size_t count) {
  kernels::adamw(s.options, s.p.data() + begin, s.gradient.data() + begin, s.m.data() + begin, s.v.data() + begin,
                 count);
}

void traffic(State& s, size_t begin, size_t count) {
  traffic_adamw(s.p.data() + begin, s.gradient.data() + begin, s.m.data() + begin, s.v.data() + begin, count, 0);
}

void time_it(Context& context, State& state, size_t threads) {
  const size_t n = state.p.size();
  const size_t passes = threads > 1 && n < 10'000'000 ? 4 : 1;
  const auto ours = [&] { run_parts(threads, n, passes, [&](size_t b, size_t count) { update(state, b, count); }); };
  const auto theirs = [&] { run_parts(threads, n, passes, [&](size_t b, size_t count) { traffic(state, b, count); }); };
  const std::vector<double> times = best_times(context, {ours, theirs}, 2.0, 7);
  const double parameters = static_cast<double>(n) * static_cast<double>(passes) * 1e-9;
  const std::string name = "adamw/" + std::to_string(n) + "/threads=" + std::to_string(threads);
  context.add(name, parameters / times[0], "Gparam/s", "traffic", parameters / times[1], kBar);
}

// Checks one more step from the state after timing, on a sample of parameters, against double precision.
void check(Context& context, State& s) {
  const size_t n = s.p.size(), stride = 997;
  std::vector<double> expected;
  s.options.step = 10;
  const auto correction = [&](float beta) { return 1 - std::pow(static_cast<double>(beta), 10); };
  const double beta1 = s.options.beta1, beta2 = s.options.beta2;
  for (size_t i = 0; i < n; i += stride) {
    const double p = s.p[i], g = s.gradient[i];
    const double m = beta1 * static_cast<double>(s.m[i]) + (1 - beta1) * g;
    const double v = beta2 * static_cast<double>(s.v[i]) + (1 - beta2) * g * g;
    const double root = std::sqrt(v / correction(s.options.beta2)) + static_cast<double>(s.options.epsilon);
    const double direction = m / correction(s.options.beta1) / root + static_cast<double>(s.options.weight_decay) * p;
    expected.push_back(p - static_cast<double>(s.options.rate) * direction);
  }
  update(s, 0, n);
  for (size_t i = 0; i < n; i += stride) {
    if (!(std::abs(expected[i / stride] - static_cast<double>(s.p[i])) <= 1e-7)) {
      return context.wrong_answer("adamw/" + std::to_string(n), "parameter " + std::to_string(i) + " is wrong");
    }
  }
}

}  // namespace

// The matrices of one block of width 512, and GPT-2 small.
void bench_adamw(Context& context) {
  constexpr size_t kBlock = 512 * 512 + 512 * 2048 + 2048 * 512, kGpt2 = 124'439'808;
  for (const size_t n : {kBlock, kGpt2}) {
    if (context.quick() && n == kGpt2) continue;
    State state(n);
    time_it(context, state, 1);
    if (context.threads() > 1) time_it(context, state, context.threads());
    check(context, state);
  }
}

}  // namespace quern::bench
