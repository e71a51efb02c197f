#include "replay/encoding.h"

#include <algorithm>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "replay/encoding.cc"
#include "hwy/foreach_target.h"
#include "replay/masks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::replay::HWY_NAMESPACE {
namespace {

// body(first element, pointer to kGroup elements, how many of them are real), group after group until it returns false.
// The last, incomplete one is a copy that is filled up with zeros, which both encodings can store.
template <typename T, class Body>
HWY_INLINE void ForGroups(const std::byte* values, size_t n, Body body) {
  size_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    if (!body(i, values + i * sizeof(T), kGroup)) return;
  }
  if (i == n) return;
  std::byte rest[kGroup * sizeof(T)] = {};
  std::memcpy(rest, values + i * sizeof(T), (n - i) * sizeof(T));
  body(i, rest, n - i);
}

template <typename T>
HWY_INLINE bool OnlyBits(const std::byte* values, size_t n, T one, size_t& bad) {
  const auto zeros = hn::Zero(Tag<T>());
  const auto ones = hn::Set(Tag<T>(), one);
  bool good = true;
  ForGroups<T>(values, n, [&](size_t first, const std::byte* p, size_t) HWY_ATTR {
    const uint64_t fits = Where<T>(p, [&](auto x) HWY_ATTR { return hn::Or(hn::Eq(x, zeros), hn::Eq(x, ones)); });
    good = fits == ~uint64_t{0};
    if (!good) bad = first + static_cast<size_t>(std::countr_one(fits));
    return good;
  });
  return good;
}

template <typename T>
HWY_INLINE bool FewEnough(const std::byte* values, size_t n, size_t most, size_t& bad) {
  size_t count = 0;
  ForGroups<T>(values, n, [&](size_t first, const std::byte* p, size_t) HWY_ATTR {
    uint64_t mask = WhereNot<T>(p, 0);
    const auto here = static_cast<size_t>(std::popcount(mask));
    if (count + here > most) {
      for (size_t before = count; before < most; ++before) mask &= mask - 1;
      bad = first + static_cast<size_t>(std::countr_zero(mask));
    }
    count += here;
    return count <= most;
  });
  return count <= most;
}

template <typename T>
HWY_INLINE void PackBits(const std::byte* values, size_t n, std::byte* stored) {
  ForGroups<T>(values, n, [&](size_t first, const std::byte* p, size_t real) HWY_ATTR {
    const uint64_t mask = WhereNot<T>(p, 0);
    std::memcpy(stored + first / 8, &mask, (real + 7) / 8);
    return true;
  });
}

template <typename T>
HWY_INLINE void UnpackBits(const std::byte* stored, size_t n, T one, std::byte* values) {
  size_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    uint64_t mask;
    std::memcpy(&mask, stored + i / 8, sizeof mask);
    Choose<T>(mask, one, 0, values + i * sizeof(T));
  }
  if (i == n) return;
  uint64_t mask = 0;
  std::memcpy(&mask, stored + i / 8, (n - i + 7) / 8);
  std::byte rest[kGroup * sizeof(T)];
  Choose<T>(mask, one, 0, rest);
  std::memcpy(values + i * sizeof(T), rest, (n - i) * sizeof(T));
}

constexpr size_t kShortIndices = 65536;  // elements up to which an index has 16 bits

// The few that are not zero are visited one by one: with one in a hundred, a look at 64 finds less than one.
template <typename T, typename Index>
HWY_INLINE void PackSparse(const std::byte* values, size_t n, size_t most, std::byte* stored) {
  std::byte* indices = stored + sizeof(uint32_t);
  const size_t end_of_indices = sizeof(uint32_t) + most * sizeof(Index);
  std::byte* kept = stored + (end_of_indices + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  uint32_t count = 0;
  ForGroups<T>(values, n, [&](size_t first, const std::byte* p, size_t) HWY_ATTR {
    for (uint64_t mask = WhereNot<T>(p, 0); mask != 0; mask &= mask - 1, ++count) {
      const auto i = static_cast<size_t>(std::countr_zero(mask));
      const auto index = static_cast<Index>(first + i);
      std::memcpy(indices + count * sizeof(Index), &index, sizeof index);
      std::memcpy(kept + count * sizeof(T), p + i * sizeof(T), sizeof(T));
    }
    return true;
  });
  std::memcpy(stored, &count, sizeof count);
  std::memset(indices + count * sizeof(Index), 0, static_cast<size_t>(kept - indices) - count * sizeof(Index));
  std::memset(kept + count * sizeof(T), 0, (most - count) * sizeof(T));
}

template <typename T, typename Index>
HWY_INLINE void UnpackSparse(const std::byte* stored, size_t n, size_t most, std::byte* values) {
  const std::byte* indices = stored + sizeof(uint32_t);
  const size_t end_of_indices = sizeof(uint32_t) + most * sizeof(Index);
  const std::byte* kept = stored + (end_of_indices + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  uint32_t count;
  std::memcpy(&count, stored, sizeof count);
  std::memset(values, 0, n * sizeof(T));
  for (size_t i = 0; i < std::min<size_t>(count, most); ++i) {
    Index index;
    std::memcpy(&index, indices + i * sizeof(Index), sizeof index);
    if (index < n) std::memcpy(values + index * sizeof(T), kept + i * sizeof(T), sizeof(T));
  }
}

}  // namespace

bool CanBits(const Column& column, const std::byte* values, size_t& bad) {
  return WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    return OnlyBits(values, column.elements(), static_cast<decltype(w)>(one_of(column.dtype)), bad);
  });
}

bool CanSparse(const Column& column, const std::byte* values, size_t& bad) {
  return WithWord(size_of(column.dtype),
                  [&](auto w) HWY_ATTR { return FewEnough<decltype(w)>(values, column.elements(), column.most, bad); });
}

void EncodeBits(const Column& column, const std::byte* values, std::byte* stored) {
  WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR { PackBits<decltype(w)>(values, column.elements(), stored); });
}

void DecodeBits(const Column& column, const std::byte* stored, std::byte* values) {
  WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    UnpackBits(stored, column.elements(), static_cast<decltype(w)>(one_of(column.dtype)), values);
  });
}

void EncodeSparse(const Column& column, const std::byte* values, std::byte* stored) {
  const size_t n = column.elements();
  WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    if (n <= kShortIndices) return PackSparse<decltype(w), uint16_t>(values, n, column.most, stored);
    PackSparse<decltype(w), uint32_t>(values, n, column.most, stored);
  });
}

void DecodeSparse(const Column& column, const std::byte* stored, std::byte* values) {
  const size_t n = column.elements();
  WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    if (n <= kShortIndices) return UnpackSparse<decltype(w), uint16_t>(stored, n, column.most, values);
    UnpackSparse<decltype(w), uint32_t>(stored, n, column.most, values);
  });
}

}  // namespace quern::replay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::replay {

HWY_EXPORT(CanBits);
HWY_EXPORT(CanSparse);
HWY_EXPORT(EncodeBits);
HWY_EXPORT(EncodeSparse);
HWY_EXPORT(DecodeBits);
HWY_EXPORT(DecodeSparse);

uint64_t one_of(DType dtype) noexcept {
  if (dtype == DType::kF16) return 0x3C00;
  if (dtype == DType::kF32) return std::bit_cast<uint32_t>(1.0f);
  if (dtype == DType::kF64) return std::bit_cast<uint64_t>(1.0);
  return 1;
}

bool can_encode(const Column& column, const std::byte* values, size_t& bad) noexcept {
  if (column.encoding == Encoding::kBits) return HWY_DYNAMIC_DISPATCH(CanBits)(column, values, bad);
  if (column.encoding == Encoding::kSparse) return HWY_DYNAMIC_DISPATCH(CanSparse)(column, values, bad);
  return true;
}

void encode(const Column& column, const std::byte* values, std::byte* stored) noexcept {
  if (column.encoding == Encoding::kBits) return HWY_DYNAMIC_DISPATCH(EncodeBits)(column, values, stored);
  if (column.encoding == Encoding::kSparse) return HWY_DYNAMIC_DISPATCH(EncodeSparse)(column, values, stored);
  std::memcpy(stored, values, column.value_bytes());
}

void decode(const Column& column, const std::byte* stored, std::byte* values) noexcept {
  if (column.encoding == Encoding::kBits) return HWY_DYNAMIC_DISPATCH(DecodeBits)(column, stored, values);
  if (column.encoding == Encoding::kSparse) return HWY_DYNAMIC_DISPATCH(DecodeSparse)(column, stored, values);
  std::memcpy(values, stored, column.value_bytes());
}

}  // namespace quern::replay
#endif  // HWY_ONCE
