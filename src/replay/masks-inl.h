// Operations on groups of 64 elements and 64-bit masks, compiled once per target; shared by the encodings and the
// snapshot filter. Included after hwy/foreach_target.h; everything is in quern::replay::HWY_NAMESPACE.
#if defined(QUERN_REPLAY_MASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_REPLAY_MASKS_INL_H_
#undef QUERN_REPLAY_MASKS_INL_H_
#else
#define QUERN_REPLAY_MASKS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

// How the loops over a group are compiled. Vectors: inlined and unrolled, since a group is 1 to 32 of them. Plain C++:
// one function per type, because g++ 12 took 23 s to inline and unroll the emulated lanes of encoding.cc everywhere.
#undef QUERN_GROUP_LOOP
#undef QUERN_GROUP_UNROLL
#if HWY_TARGET == HWY_EMU128
#define QUERN_GROUP_LOOP HWY_NOINLINE
#define QUERN_GROUP_UNROLL
#else
#define QUERN_GROUP_LOOP HWY_INLINE
#define QUERN_GROUP_UNROLL HWY_UNROLL(32)
#endif

HWY_BEFORE_NAMESPACE();
namespace quern::replay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kGroup = 64;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);  // at most kGroup, and a divisor of it
static_assert(HWY_MAX_BYTES <= kGroup);

// Bit i is lane i.
template <typename T, class M>
HWY_INLINE uint64_t Bits(Tag<T> d, M mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  uint64_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

// Bit i is is(element i), for the kGroup elements starting at `p`, which need not be aligned.
template <typename T, class Is>
QUERN_GROUP_LOOP uint64_t Where(const std::byte* p, Is is) {
  constexpr Tag<T> d;
  uint64_t mask = 0;
  QUERN_GROUP_UNROLL
  for (size_t i = 0; i < kGroup; i += kLanes<T>) {
    mask |= Bits<T>(d, is(hn::LoadU(d, reinterpret_cast<const T*>(p) + i))) << i;
  }
  return mask;
}

template <typename T>
HWY_INLINE uint64_t WhereNot(const std::byte* p, T value) {
  const auto v = hn::Set(Tag<T>(), value);
  return ~Where<T>(p, [v](auto x) HWY_ATTR { return hn::Eq(x, v); });
}

// Sets element i to `set` if bit i of the mask is set, otherwise to `clear`.
template <typename T>
QUERN_GROUP_LOOP void Choose(uint64_t mask, T set, T clear, std::byte* p) {
  constexpr Tag<T> d;
  const auto yes = hn::Set(d, set), no = hn::Set(d, clear);
  QUERN_GROUP_UNROLL
  for (size_t i = 0; i < kGroup; i += kLanes<T>) {
    const uint64_t rest = mask >> i;
    uint8_t bits[8];
    std::memcpy(bits, &rest, sizeof bits);
    hn::StoreU(hn::IfThenElse(hn::LoadMaskBits(d, bits), yes, no), d, reinterpret_cast<T*>(p) + i);
  }
}

// Calls f with a value of the unsigned type of this size.
template <class F>
HWY_INLINE auto WithWord(size_t bytes, F f) {
  if (bytes == 1) return f(uint8_t{});
  if (bytes == 2) return f(uint16_t{});
  if (bytes == 4) return f(uint32_t{});
  return f(uint64_t{});
}

}  // namespace quern::replay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
