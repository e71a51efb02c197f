#include "report/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace quern::report {
namespace {

// A bucket is the upper bits of the float: sign, exponent and the first three bits of the fraction.
constexpr int kShift = 20;
constexpr uint32_t kInfinity = 0x7F800000;
constexpr uint32_t kNearZero = std::bit_cast<uint32_t>(0x1p-24f);
constexpr uint32_t kBuckets = 1u << (32 - kShift);
constexpr uint32_t kPerSign = kBuckets / 2;
constexpr uint32_t kFirst = kNearZero >> kShift, kLast = (kInfinity >> kShift) - 1;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr size_t kChunk = 4096;  // floats: the second pass over them hits the L1 cache
constexpr size_t kLanes = 8;

struct Moments {
  double sum = 0, squares = 0;
  float min = kInfinite, max = -kInfinite;

  void add(float value) {
    sum += value;
    squares += double{value} * value;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  void add(const Moments& other) {
    sum += other.sum;
    squares += other.squares;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
  }
};

// Moments of finite values. If a value is not finite, neither is the sum of squares, which finite floats cannot
// overflow.
Moments moments_of(std::span<const float> values) {
  std::array<Moments, kLanes> lanes;
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane].add(values[i + lane]);
  }
  for (; i < values.size(); ++i) lanes[0].add(values[i]);
  for (size_t lane = 1; lane < kLanes; ++lane) lanes[0].add(lanes[lane]);
  return lanes[0];
}

Moments moments_of_finite(std::span<const float> values) {
  Moments moments;
  for (const float value : values) {
    if (std::isfinite(value)) moments.add(value);
  }
  return moments;
}

using Counts = std::array<uint32_t, kBuckets>;

// Adjacent values often fall into the same bucket. Two sets of counters avoid a dependency between their increments.
void count(std::span<const float> values, Counts& even, Counts& odd) {
  const auto bucket = [](float value) { return std::bit_cast<uint32_t>(value) >> kShift; };
  size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    ++even[bucket(values[i])];
    ++odd[bucket(values[i + 1])];
  }
  if (i < values.size()) ++even[bucket(values[i])];
}

float smallest_of(uint32_t bucket) { return std::bit_cast<float>(bucket << kShift); }  // of a positive bucket

// Appends a bucket. Merges adjacent empty buckets and drops empty ones at the beginning.
void append(Histogram& h, double limit, double count) {
  if (count == 0 && h.counts.empty()) return;
  if (count == 0 && h.counts.back() == 0) {
    h.limits.back() = limit;
    return;
  }
  h.limits.push_back(limit);
  h.counts.push_back(count);
}

}  // namespace

Histogram make_histogram(std::span<const float> values) {
  Counts even = {}, odd = {};
  Moments moments;
  for (size_t at = 0; at < values.size(); at += kChunk) {
    const std::span<const float> chunk = values.subspan(at, std::min(kChunk, values.size() - at));
    count(chunk, even, odd);
    const Moments fast = moments_of(chunk);
    moments.add(std::isfinite(fast.squares) ? fast : moments_of_finite(chunk));
  }
  const auto total = [&](uint32_t bucket) { return double(even[bucket]) + double(odd[bucket]); };
  Histogram h;
  for (uint32_t b = kLast; b >= kFirst; --b) append(h, -smallest_of(b), total(kPerSign + b));
  double near_zero = 0;
  for (uint32_t b = 0; b < kFirst; ++b) near_zero += total(b) + total(kPerSign + b);
  append(h, smallest_of(kFirst), near_zero);
  for (uint32_t b = kFirst; b <= kLast; ++b) {
    append(h, b == kLast ? std::numeric_limits<float>::max() : smallest_of(b + 1), total(b));
  }
  if (!h.counts.empty() && h.counts.back() == 0) {
    h.limits.pop_back();
    h.counts.pop_back();
  }
  for (const double n : h.counts) h.count += n;
  h.not_finite = values.size() - static_cast<size_t>(h.count);
  if (h.count == 0) return h;
  h.min = moments.min;
  h.max = moments.max;
  h.sum = moments.sum;
  h.squares = moments.squares;
  return h;
}

}  // namespace quern::report
