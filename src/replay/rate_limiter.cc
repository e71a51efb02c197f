#include "replay/rate_limiter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace quern::replay {
namespace {

constexpr double kShortestSleep = 20e-6;  // a shorter one takes just as long: the kernel adds 50 us to a timer
constexpr double kMaxSleep = 1e-3;        // 1000 polls per second are 0.1 % of a core

void expect_not_negative(double value, const char* what) {
  if (std::isfinite(value) && value >= 0) return;
  throw Error("[replay] rate limit: {}: expected a finite number, 0 or more, found {}", what, value);
}

constexpr double kLookInterval = 0.05;  // short enough for Ctrl-C

// Repeats `attempt` until it succeeds or the time is up; calls `check` before every sleep.
template <typename Try, typename Check>
bool wait_for(Try attempt, Check check, const Wait& wait) {
  if (attempt()) return true;
  const double deadline = wait.seconds > 0 ? seconds_now() + wait.seconds : 0;
  double looked = seconds_now();
  for (double sleep = kShortestSleep; wait.seconds != 0; sleep = std::min(2 * sleep, kMaxSleep)) {
    check();
    const double now = seconds_now(), left = wait.seconds < 0 ? sleep : deadline - now;
    if (!(left > 0)) return false;
    if (wait.look && now - looked >= kLookInterval) {
      wait.look();
      looked = now;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, sleep)));
    if (attempt()) return true;
  }
  check();
  return false;
}

void expect_rows(uint64_t rows) {
  if (rows <= RateLimiter::kMaxRows) return;
  throw Error("[replay] rate limit: expected at most {} rows in a call, found {}", RateLimiter::kMaxRows, rows);
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

bool RateLimiter::admit_inserts(uint64_t rows, const Wait& wait) {
  expect_rows(rows);
  return wait_for([&] { return try_inserts(rows) || lost(); }, [&] { expect_possible(); }, wait);
}

bool RateLimiter::admit_samples(uint64_t rows, const Wait& wait) {
  expect_rows(rows);
  return wait_for([&] { return try_samples(rows) || lost(); }, [&] { expect_possible(); }, wait);
}

// Counters are read one after the other and may grow in between, by less than the margin of the limits.
void RateLimiter::expect_possible() const {
  if (limit_.samples_per_insert == 0 || lost()) return;
  const uint64_t inserts = inserts_->value.load(std::memory_order_acquire);
  const uint64_t samples = samples_->value.load(std::memory_order_acquire);
  const double found = balance(inserts, samples), rows = static_cast<double>(kMaxRows);
  if (found <= limit_.slack + limit_.samples_per_insert * rows && found >= -limit_.slack - rows) return;
  if (lost()) return;  // both or one of the counters were read as zero
  throw Error(
      "[replay] rate limit: expected consistent counters, found {} rows added and {} sampled at {} samples "
      "per insert: the buffer is damaged; create a new one",
      inserts, samples, limit_.samples_per_insert);
}

double RateLimiter::balance() const noexcept {
  return balance(inserts_->value.load(std::memory_order_acquire), samples_->value.load(std::memory_order_acquire));
}

// The compare-and-swap is on the caller's own counter: the decision is valid for the value that it replaces, and the
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
  const uint64_t added = published_->value.load(std::memory_order_acquire);
  const uint64_t cleared = published_->second.load(std::memory_order_acquire);
  return added - std::min(added, cleared) >= limit_.minimum;
}

double RateLimiter::balance(uint64_t inserts, uint64_t samples) const noexcept {
  return limit_.samples_per_insert * static_cast<double>(inserts) - static_cast<double>(samples);
}

}  // namespace quern::replay
