#include "core/permutation.h"

#include <cassert>

namespace quern {

Permutation::Permutation(uint64_t size, const RandomStream& stream) : size_(size), stream_(stream) {
  assert(size >= 1);
  while (half_bits_ < 32 && (size - 1) >> (2 * half_bits_) != 0) ++half_bits_;
}

uint64_t Permutation::operator()(uint64_t index) const {
  assert(index < size_);
  do {
    index = turn(index);
  } while (index >= size_);
  return index;
}

uint64_t Permutation::turn(uint64_t value) const {
  const auto mask = static_cast<uint32_t>((uint64_t{1} << half_bits_) - 1);
  auto left = static_cast<uint32_t>(value >> half_bits_);
  auto right = static_cast<uint32_t>(value) & mask;
  RandomStream stream = stream_;
  for (uint32_t round = 0; round < kRounds; ++round, ++stream.sequence) {
    const uint32_t mixed = left ^ (stream.block(right)[0] & mask);
    left = right;
    right = mixed;
  }
  return static_cast<uint64_t>(left) << half_bits_ | right;
}

}  // namespace quern
