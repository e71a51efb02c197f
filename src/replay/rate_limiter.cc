#include "replay/rate_limiter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace quern::replay {
namespace {

constexpr double kShortestSleep = 20e-6;  // a shorter one takes as long: the kernel adds 50 us to a timer
constexpr double kLongestSleep = 1e-3;    // 1000 looks a second are 0.1 % of a core

void expect_not_negative(double value, const char* what) {
  if (std::isfinite(value) && value >= 0) return;
  throw Error("[replay] rate limit: {}: expected a finite number, 0 or more, found {}", what, value);
}

// Asks until it is granted or the time is over.
template <typename Try>
bool wait_for(Try attempt, double timeout) noexcept {
  if (attempt()) return true;
  const double deadline = timeout > 0 ? seconds_now() + timeout : 0;
  for (double sleep = kShortestSleep; timeout != 0; sleep = std::min(2 * sleep, kLongestSleep)) {
    const double left = timeout < 0 ? sleep : deadline - seconds_now();
    if (!(left > 0)) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, sleep)));
    if (attempt()) return true;
  }
  return false;
}

}  // namespace

void check_rate_limit(const RateLimit& limit, uint64_t capacity) {
  expect_not_negative(limit.samples_per_insert, "samples_per_insert");
  expect_not_negative(limit.slack, "slack");
  if (limit.minimum < 1 || limit.minimum > capacity) {
    throw Error("[replay] rate limit: minimum: expected 1 to the capacity of {} rows, found {}", capacity,
                limit.minimum);
  }
}

RateLimiter::RateLimiter(const RateLimit& limit, const Counter* published, Counter* inserts, Counter* samples,
                         const MappingGuard* guard) noexcept
    : limit_(limit), published_(published), inserts_(inserts), samples_(samples), guard_(guard) {}

bool RateLimiter::admit_inserts(uint64_t rows, double timeout) noexcept {
  return wait_for([&] { return try_inserts(rows) || lost(); }, timeout);
}

bool RateLimiter::admit_samples(uint64_t rows, double timeout) noexcept {
  return wait_for([&] { return try_samples(rows) || lost(); }, timeout);
}

double RateLimiter::balance() const noexcept {
  return balance(inserts_->value.load(std::memory_order_acquire), samples_->value.load(std::memory_order_acquire));
}

// The compare-and-swap is on the caller's own counter: what was decided holds for the value that it replaces, and the
// other counter can only have moved in the caller's favour since it was read.
bool RateLimiter::try_inserts(uint64_t rows) noexcept {
  if (!filled()) return true;
  uint64_t inserts = inserts_->value.load(std::memory_order_relaxed);
  do {
    const uint64_t samples = samples_->value.load(std::memory_order_acquire);
    if (limit_.samples_per_insert > 0 && balance(inserts, samples) > limit_.slack) return false;
  } while (!inserts_->value.compare_exchange_weak(inserts, inserts + rows, std::memory_order_acq_rel));
  return true;
}

bool RateLimiter::try_samples(uint64_t rows) noexcept {
  if (!filled()) return false;
  uint64_t samples = samples_->value.load(std::memory_order_relaxed);
  do {
    const uint64_t inserts = inserts_->value.load(std::memory_order_acquire);
    if (limit_.samples_per_insert > 0 && balance(inserts, samples) < -limit_.slack) return false;
  } while (!samples_->value.compare_exchange_weak(samples, samples + rows, std::memory_order_acq_rel));
  return true;
}

bool RateLimiter::filled() const noexcept {
  return published_->value.load(std::memory_order_acquire) >= limit_.minimum;
}

double RateLimiter::balance(uint64_t inserts, uint64_t samples) const noexcept {
  return limit_.samples_per_insert * static_cast<double>(inserts) - static_cast<double>(samples);
}

}  // namespace quern::replay
