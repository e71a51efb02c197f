// Conversion between the values of a row, as callers see them, and their bytes in the buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/schema.h"

namespace quern::replay {

// kBits: bit e % 8 of byte e / 8 is element e. kSparse: uint32 count, then `count` indices (uint16 if elements() <=
// 65536, else uint32) in increasing order in space for `max_nonzero`, then, at the next multiple of the dtype's size,
// the values. Unused bytes are zero, so that equal rows are equal bytes. Values are compared and stored by their bits:
// -0.0 is not zero, so kSparse stores it and kBits rejects it, and NaN keeps its payload. No alignment is required.

// Whether these values can be stored; if not, `bad` is the first element that cannot (kBits: not 0 or 1; kSparse: the
// first one too many). Always true for kRaw. Any thread.
bool can_encode(const Column& column, const std::byte* values, size_t& bad) noexcept;

// values (value_bytes()) -> stored (stored_bytes()). Requires can_encode(); if another thread has changed the values
// since, the row's values are unspecified, but nothing else is touched. The arrays must not overlap.
void encode(const Column& column, const std::byte* values, std::byte* stored) noexcept;

// stored -> values. `stored` may contain arbitrary bytes, since it may be torn: nothing outside `values` is written,
// and every byte of `values` is.
void decode(const Column& column, const std::byte* stored, std::byte* values) noexcept;

// The bits of the number 1.
uint64_t one_of(DType dtype) noexcept;

}  // namespace quern::replay
