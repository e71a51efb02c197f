#include "kernels/vector_ops.h"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_ops.cc"
#include "hwy/foreach_target.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kBlock = 4096;
static_assert(kBlock % kVirtualLanes == 0);

HWY_INLINE V16 AddSquares(const float* HWY_RESTRICT x, const V16& sum) {
  const V16 values = Load16(x);
  return MulAdd16(values, values, sum);
}

HWY_INLINE double BlockSquares(const float* HWY_RESTRICT x, size_t n) {
  V16 sum = Set16(0.0f);
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) sum = AddSquares(x + i, sum);
  if (i < n) {
    const V16 rest = LoadN16(x + i, n - i);
    sum = MulAdd16(rest, rest, sum);
  }
  return static_cast<double>(Sum16(sum));
}

// Four full blocks at a time: one block is a chain of dependent additions, 4 cycles for 64 bytes.
HWY_INLINE double FourBlocksSquares(const float* HWY_RESTRICT x, double total) {
  V16 a = Set16(0.0f), b = a, c = a, e = a;
  for (size_t i = 0; i < kBlock; i += kVirtualLanes) {
    a = AddSquares(x + i, a);
    b = AddSquares(x + i + kBlock, b);
    c = AddSquares(x + i + 2 * kBlock, c);
    e = AddSquares(x + i + 3 * kBlock, e);
  }
  for (const V16& sum : {a, b, c, e}) total += static_cast<double>(Sum16(sum));
  return total;
}

// Without the sign, infinity and NaN are the integers from 0x7F800000 up, so the maximum reveals them.
HWY_INLINE VI Largest(VI largest, const float* HWY_RESTRICT x) {
  return hn::Max(largest, hn::And(hn::BitCast(di, hn::LoadU(d, x)), hn::Set(di, 0x7FFFFFFF)));
}

HWY_INLINE bool BlockFinite(const float* HWY_RESTRICT x, size_t n) {
  VI a = hn::Zero(di), b = a, c = a, e = a;
  size_t i = 0;
  for (; i + 4 * kN <= n; i += 4 * kN) {
    a = Largest(a, x + i);
    b = Largest(b, x + i + kN);
    c = Largest(c, x + i + 2 * kN);
    e = Largest(e, x + i + 3 * kN);
  }
  for (; i + kN <= n; i += kN) a = Largest(a, x + i);
  if (i < n) {
    HWY_ALIGN float rest[kN] = {};
    std::memcpy(rest, x + i, (n - i) * sizeof(float));
    a = Largest(a, rest);
  }
  const VI largest = hn::Max(hn::Max(a, b), hn::Max(c, e));
  return hn::AllTrue(di, hn::Lt(largest, hn::Set(di, 0x7F800000)));
}

}  // namespace

void Accumulate(float* HWY_RESTRICT sum, const float* HWY_RESTRICT x, size_t n) {
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) Store16(Add16(Load16(sum + i), Load16(x + i)), sum + i);
  for (; i < n; ++i) sum[i] += x[i];
}

void Scale(float* HWY_RESTRICT x, float factor, size_t n) {
  const V16 factors = Set16(factor);
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) Store16(Mul16(Load16(x + i), factors), x + i);
  for (; i < n; ++i) x[i] *= factor;
}

double SquaredNorm(const float* x, size_t n) {
  double total = 0;
  size_t i = 0;
  for (; i + 4 * kBlock <= n; i += 4 * kBlock) total = FourBlocksSquares(x + i, total);
  for (; i < n; i += kBlock) total += BlockSquares(x + i, std::min(kBlock, n - i));
  return total;
}

bool AllFinite(const float* x, size_t n) {
  for (size_t i = 0; i < n; i += kBlock) {
    if (!BlockFinite(x + i, std::min(kBlock, n - i))) return false;
  }
  return true;
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(Accumulate);
HWY_EXPORT(Scale);
HWY_EXPORT(SquaredNorm);
HWY_EXPORT(AllFinite);

void accumulate(float* sum, const float* x, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(Accumulate)(sum, x, n); }
void scale(float* x, float factor, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(Scale)(x, factor, n); }
double squared_norm(const float* x, size_t n) noexcept { return HWY_DYNAMIC_DISPATCH(SquaredNorm)(x, n); }
bool all_finite(const float* x, size_t n) noexcept { return HWY_DYNAMIC_DISPATCH(AllFinite)(x, n); }

}  // namespace quern::kernels
#endif
