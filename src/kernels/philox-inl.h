// Philox 4x32-10 on vectors, and dropout masks made from it; compiled once per target. Included by kernel .cc files
// after hwy/foreach_target.h, like vec-inl.h.
#if defined(QUERN_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_PHILOX_INL_H_
#undef QUERN_KERNELS_PHILOX_INL_H_
#else
#define QUERN_KERNELS_PHILOX_INL_H_
#endif

#include "core/philox.h"
#include "kernels/dropout.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

using DU = hn::RebindToUnsigned<D>;
using DW = hn::Repartition<uint64_t, D>;
using VU = hn::Vec<DU>;
using VW = hn::Vec<DW>;
constexpr DU du;
constexpr DW dw;

// One block of random words per lane.
struct PhiloxWords {
  VU w0, w1, w2, w3;
};

// A stream's blocks, kN at a time. Holds the ten round keys in memory, where a broadcast load is free.
class PhiloxVectors {
 public:
  explicit PhiloxVectors(const RandomStream& stream) : counter_(stream.counter(0)) {
    PhiloxKey key = stream.key();
    for (int round = 0; round < kPhiloxRounds; ++round) {
      key0_[round] = key[0];
      key1_[round] = key[1];
      key = {key[0] + kPhiloxW0, key[1] + kPhiloxW1};
    }
  }

  // Blocks first .. first + kN - 1, in lane order. `first` must be a multiple of kN.
  HWY_INLINE PhiloxWords At(uint32_t first) const {
    const VW even = hn::Iota(dw, 0);
    const VW block = hn::Add(hn::Set(dw, first), hn::Add(even, even));
    const State e = Rounds(block);
    const State o = Rounds(hn::Add(block, hn::Set(dw, 1)));
    return {Join(e.c0, o.c0), Join(e.c1, o.c1), Join(e.c2, o.c2), Join(e.c3, o.c3)};
  }

 private:
  // The state of every second block: a 32-bit word in the low half of 64 bits. The high half is never read, so neither
  // the 32 x 32 -> 64 multiplication nor the swap of halves needs a mask or a shuffle.
  struct State {
    VW c0, c1, c2, c3;
  };

  static HWY_INLINE VW Product(VW x, uint32_t factor) {
    return hn::MulEven(hn::BitCast(du, x), hn::BitCast(du, hn::Set(dw, factor)));
  }

  HWY_INLINE State Rounds(VW block) const {
    State c{block, hn::Set(dw, counter_[1]), hn::Set(dw, counter_[2]), hn::Set(dw, counter_[3])};
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const VW product0 = Product(c.c0, kPhiloxM0);
      const VW product1 = Product(c.c2, kPhiloxM1);
      c.c0 = hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(c.c1, hn::Set(dw, key0_[round])));
      c.c2 = hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(c.c3, hn::Set(dw, key1_[round])));
      c.c1 = product1;
      c.c3 = product0;
    }
    return c;
  }

  static HWY_INLINE VU Join(VW even, VW odd) {
    return hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(odd)), hn::BitCast(du, even));
  }

  PhiloxBlock counter_;
  uint64_t key0_[kPhiloxRounds];
  uint64_t key1_[kPhiloxRounds];
};

// Four vectors of one group of 64 elements: with part p, vector v is for elements 16 v + p kN .. + kN - 1 of the group.
struct DropoutVectors {
  V v0, v1, v2, v3;
};

// Applies dropout to vectors as defined in dropout.h. A group (64 consecutive elements) has kParts parts.
class DropoutMask {
 public:
  explicit DropoutMask(const Dropout& options)
      : philox_(options.stream), threshold_(options.threshold()), scale_(options.scale()) {}

  // x * scale if the element survives, otherwise 0.
  HWY_INLINE DropoutVectors Apply(uint64_t group, size_t part, const DropoutVectors& x) const {
    const PhiloxWords w = philox_.At(static_cast<uint32_t>(group * kVirtualLanes + part * kN));
    return {Drop(x.v0, w.w0), Drop(x.v1, w.w1), Drop(x.v2, w.w2), Drop(x.v3, w.w3)};
  }

 private:
  HWY_INLINE V Drop(V x, VU word) const {
    const auto dropped = hn::RebindMask(d, hn::Lt(word, hn::Set(du, threshold_)));
    return hn::IfThenZeroElse(dropped, hn::Mul(x, hn::Set(d, scale_)));
  }

  PhiloxVectors philox_;
  uint32_t threshold_;
  float scale_;
};

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_PHILOX_INL_H_
