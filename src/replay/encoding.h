// Between the values of a row, as callers have them, and their bytes in the buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/schema.h"

namespace quern::replay {

// kBits: bit e % 8 of byte e / 8 is element e. kSparse: uint32 count, then `count` indices (uint16 where elements() <=
// 65536, else uint32) in rising order in room for `max_nonzero`, then, at the next multiple of the dtype's size, the
// values. Bytes beyond what a row uses are zero, so that equal rows are equal bytes. Values are compared and kept by
// their bits: -0.0 is not zero, so kSparse keeps it and kBits refuses it, and NaN keeps its payload. Nothing has to be
// aligned.

// Whether these values can be stored; if not, `bad` is the first element that cannot (kBits: not 0 or 1; kSparse: the
// first one too many). Always true for kRaw. Any thread.
bool can_encode(const Column& column, const std::byte* values, size_t& bad) noexcept;

// values (value_bytes()) -> stored (stored_bytes()). can_encode() holds; where it does not, because another thread has
// changed the values since, the row has values of its own choice and nothing else is touched. They do not overlap.
void encode(const Column& column, const std::byte* values, std::byte* stored) noexcept;

// stored -> values. `stored` may hold any bytes at all, since it may be torn: nothing outside of `values` is written,
// and every byte of `values` is.
void decode(const Column& column, const std::byte* stored, std::byte* values) noexcept;

// The bits of the number 1.
uint64_t one_of(DType dtype) noexcept;

}  // namespace quern::replay
