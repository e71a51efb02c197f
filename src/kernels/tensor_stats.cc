#include "kernels/tensor_stats.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor_stats.cc"
#include "hwy/foreach_target.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kBlock = 4096;
static_assert(kBlock % kVirtualLanes == 0);

// Statistics of one block. The magnitude is compared as an integer, so that NaN is above infinity and infinity above
// the rest.
struct Running {
  V16 sum, squares;
  VI largest, zeros;  // zeros: the negated count, because a true mask is -1

  HWY_INLINE Running() : sum(Set16(0.0f)), squares(sum), largest(hn::Zero(di)), zeros(largest) {}

  HWY_INLINE void Count(V x) {
    const VI magnitude = hn::And(hn::BitCast(di, x), hn::Set(di, 0x7FFFFFFF));
    largest = hn::Max(largest, magnitude);
    zeros = hn::Add(zeros, hn::VecFromMask(di, hn::Eq(magnitude, hn::Zero(di))));
  }
  HWY_INLINE void Add(const V16& x) {
    sum = Add16(sum, x);
    squares = MulAdd16(x, x, squares);
    Count(x.p0);
    if constexpr (kParts > 1) Count(x.p1);
    if constexpr (kParts > 2) {
      Count(x.p2);
      Count(x.p3);
    }
  }
};

// A block of at most 4,096 elements has at most 4,096 / kN zeros per lane.
HWY_INLINE void AddTo(TensorStats& stats, const Running& block, int32_t padding) {
  stats.sum += static_cast<double>(Sum16(block.sum));
  stats.squares += static_cast<double>(Sum16(block.squares));
  const int32_t zeros = -hn::GetLane(hn::SumOfLanes(di, block.zeros)) - padding;
  stats.zeros += static_cast<uint64_t>(zeros);
  const int32_t largest = hn::GetLane(hn::MaxOfLanes(di, block.largest));
  stats.largest = std::bit_cast<float>(std::max(std::bit_cast<int32_t>(stats.largest), largest));
}

HWY_INLINE void AddBlock(TensorStats& stats, const float* HWY_RESTRICT x, size_t n) {
  Running block;
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) block.Add(Load16(x + i));
  int32_t padding = 0;
  if (i < n) {
    block.Add(LoadN16(x + i, n - i));
    padding = static_cast<int32_t>(kVirtualLanes - (n - i));
  }
  AddTo(stats, block, padding);
}

// Two full blocks at a time: one is a chain of dependent additions.
HWY_INLINE void AddTwoBlocks(TensorStats& stats, const float* HWY_RESTRICT x) {
  Running a, b;
  for (size_t i = 0; i < kBlock; i += kVirtualLanes) {
    a.Add(Load16(x + i));
    b.Add(Load16(x + i + kBlock));
  }
  AddTo(stats, a, 0);
  AddTo(stats, b, 0);
}

HWY_INLINE V16 AddSquare(const V16& a, const V16& b, const V16& sum) {
  const V16 difference = Sub16(a, b);
  return MulAdd16(difference, difference, sum);
}

HWY_INLINE double BlockDistance(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t n) {
  V16 sum = Set16(0.0f);
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) sum = AddSquare(Load16(a + i), Load16(b + i), sum);
  if (i < n) sum = AddSquare(LoadN16(a + i, n - i), LoadN16(b + i, n - i), sum);
  return static_cast<double>(Sum16(sum));
}

}  // namespace

TensorStats Stats(const float* x, size_t n) {
  TensorStats stats;
  size_t i = 0;
  for (; i + 2 * kBlock <= n; i += 2 * kBlock) AddTwoBlocks(stats, x + i);
  for (; i < n; i += kBlock) AddBlock(stats, x + i, std::min(kBlock, n - i));
  return stats;
}

double SquaredDistance(const float* a, const float* b, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; i += kBlock) total += BlockDistance(a + i, b + i, std::min(kBlock, n - i));
  return total;
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(Stats);
HWY_EXPORT(SquaredDistance);

TensorStats tensor_stats(const float* x, size_t n) noexcept { return HWY_DYNAMIC_DISPATCH(Stats)(x, n); }
double squared_distance(const float* a, const float* b, size_t n) noexcept {
  return HWY_DYNAMIC_DISPATCH(SquaredDistance)(a, b, n);
}

}  // namespace quern::kernels
#endif
