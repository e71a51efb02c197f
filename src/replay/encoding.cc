#include "replay/encoding.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "replay/row_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "replay/encoding.cc"
#include "hwy/foreach_target.h"
#include "replay/masks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::replay::HWY_NAMESPACE {
namespace {

// Calls body(first element, pointer to kGroup elements, number of valid ones) for each group until it returns false.
// The last, incomplete group is a copy padded with zeros, which both encodings can store.
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
HWY_INLINE bool FewEnough(const std::byte* values, size_t n, size_t max, size_t& bad) {
  size_t count = 0;
  ForGroups<T>(values, n, [&](size_t first, const std::byte* p, size_t) HWY_ATTR {
    uint64_t mask = WhereNot<T>(p, 0);
    const auto here = static_cast<size_t>(std::popcount(mask));
    if (count + here > max) {
      for (size_t before = count; before < max; ++before) mask &= mask - 1;
      bad = first + static_cast<size_t>(std::countr_zero(mask));
    }
    count += here;
    return count <= max;
  });
  return count <= max;
}

// The stored side may be read or written concurrently, so it is accessed only by the copy functions of row_copy.h, in
// pieces that stay in the L1 cache.
constexpr size_t kPieceBytes = 512;

template <typename T>
HWY_INLINE void PackBits(const std::byte* values, size_t n, std::byte* stored) {
  std::byte piece[kPieceBytes];
  size_t filled = 0, done = 0;
  ForGroups<T>(values, n, [&](size_t, const std::byte* p, size_t real) HWY_ATTR {
    const uint64_t mask = WhereNot<T>(p, 0);
    std::memcpy(piece + filled, &mask, sizeof mask);
    filled += (real + 7) / 8;
    if (filled < kPieceBytes) return true;
    copy_to_row(stored + done, piece, filled);
    done += filled;
    filled = 0;
    return true;
  });
  copy_to_row(stored + done, piece, filled);
}

template <typename T>
HWY_INLINE void UnpackBits(const std::byte* stored, size_t n, T one, std::byte* values) {
  std::byte piece[kPieceBytes] = {};
  for (size_t i = 0; i < n; i += kGroup) {
    const size_t at = i / 8 % kPieceBytes;
    if (at == 0) copy_from_row(piece, stored + i / 8, std::min(kPieceBytes, (n + 7) / 8 - i / 8));
    uint64_t mask;
    std::memcpy(&mask, piece + at, sizeof mask);
    if (n - i >= kGroup) {
      Choose<T>(mask, one, 0, values + i * sizeof(T));
      continue;
    }
    std::byte rest[kGroup * sizeof(T)];
    Choose<T>(mask, one, 0, rest);
    std::memcpy(values + i * sizeof(T), rest, (n - i) * sizeof(T));
  }
}

constexpr size_t kShortIndices = 65536;  // max elements for 16-bit indices

void ClearRow(std::byte* from, const std::byte* end) {
  constexpr std::byte kZeros[kPieceBytes] = {};
  for (; from < end; from += std::min<size_t>(kPieceBytes, static_cast<size_t>(end - from))) {
    copy_to_row(from, kZeros, std::min<size_t>(kPieceBytes, static_cast<size_t>(end - from)));
  }
}

// Offset of the values of a sparse row.
template <typename T, typename Index>
constexpr size_t ValuesOffset(size_t max) {
  return (sizeof(uint32_t) + max * sizeof(Index) + sizeof(T) - 1) / sizeof(T) * sizeof(T);
}

// The few nonzero elements are visited one by one: with one in a hundred, a group of 64 has less than one.
template <typename T, typename Index>
HWY_INLINE void PackSparse(const std::byte* values, size_t n, size_t max, std::byte* stored) {
  std::byte* const indices = stored + sizeof(uint32_t);
  std::byte* const stored_values = stored + ValuesOffset<T, Index>(max);
  size_t count = 0;
  ForGroups<T>(values, n, [&](size_t first, const std::byte* p, size_t) HWY_ATTR {
    Index index[kGroup];
    T value[kGroup];
    size_t here = 0;
    for (uint64_t mask = WhereNot<T>(p, 0); mask != 0; mask &= mask - 1, ++here) {
      const auto i = static_cast<size_t>(std::countr_zero(mask));
      index[here] = static_cast<Index>(first + i);
      std::memcpy(&value[here], p + i * sizeof(T), sizeof(T));
    }
    here = std::min(here, max - count);
    if (here == 0) return true;
    copy_to_row(indices + count * sizeof(Index), reinterpret_cast<const std::byte*>(index), here * sizeof(Index));
    copy_to_row(stored_values + count * sizeof(T), reinterpret_cast<const std::byte*>(value), here * sizeof(T));
    count += here;
    return true;
  });
  const auto saved_count = static_cast<uint32_t>(count);  // a schema allows `max_nonzero` of 2^32 - 1
  copy_to_row(stored, reinterpret_cast<const std::byte*>(&saved_count), sizeof saved_count);
  ClearRow(indices + count * sizeof(Index), stored_values);
  ClearRow(stored_values + count * sizeof(T), stored_values + max * sizeof(T));
}

template <typename T, typename Index>
HWY_INLINE void UnpackSparse(const std::byte* stored, size_t n, size_t max, std::byte* values) {
  const std::byte* const indices = stored + sizeof(uint32_t);
  const std::byte* const stored_values = stored + ValuesOffset<T, Index>(max);
  uint32_t said = 0;
  copy_from_row(reinterpret_cast<std::byte*>(&said), stored, sizeof said);
  const size_t count = std::min<size_t>(said, max);
  std::memset(values, 0, n * sizeof(T));
  for (size_t done = 0; done < count; done += kGroup) {
    const size_t here = std::min(kGroup, count - done);
    Index index[kGroup];
    T value[kGroup];
    copy_from_row(reinterpret_cast<std::byte*>(index), indices + done * sizeof(Index), here * sizeof(Index));
    copy_from_row(reinterpret_cast<std::byte*>(value), stored_values + done * sizeof(T), here * sizeof(T));
    for (size_t i = 0; i < here; ++i) {
      if (index[i] < n) std::memcpy(values + index[i] * sizeof(T), &value[i], sizeof(T));
    }
  }
}

}  // namespace

bool CanBits(const Column& column, const std::byte* values, size_t& bad) {
  return WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    return OnlyBits(values, column.elements(), static_cast<decltype(w)>(one_of(column.dtype)), bad);
  });
}

bool CanSparse(const Column& column, const std::byte* values, size_t& bad) {
  return WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    return FewEnough<decltype(w)>(values, column.elements(), column.max_nonzero, bad);
  });
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
    if (n <= kShortIndices) return PackSparse<decltype(w), uint16_t>(values, n, column.max_nonzero, stored);
    PackSparse<decltype(w), uint32_t>(values, n, column.max_nonzero, stored);
  });
}

void DecodeSparse(const Column& column, const std::byte* stored, std::byte* values) {
  const size_t n = column.elements();
  WithWord(size_of(column.dtype), [&](auto w) HWY_ATTR {
    if (n <= kShortIndices) return UnpackSparse<decltype(w), uint16_t>(stored, n, column.max_nonzero, values);
    UnpackSparse<decltype(w), uint32_t>(stored, n, column.max_nonzero, values);
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
  copy_to_row(stored, values, column.value_bytes());
}

void decode(const Column& column, const std::byte* stored, std::byte* values) noexcept {
  if (column.encoding == Encoding::kBits) return HWY_DYNAMIC_DISPATCH(DecodeBits)(column, stored, values);
  if (column.encoding == Encoding::kSparse) return HWY_DYNAMIC_DISPATCH(DecodeSparse)(column, stored, values);
  copy_from_row(values, stored, column.value_bytes());
}

}  // namespace quern::replay
#endif  // HWY_ONCE
