// A hash that finds accidental differences at the speed of memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace quern {

// Not for untrusted data, and not stored: it may change. Four independent chains, because one would wait for its
// multiplication at every word.
inline uint64_t quick_hash(std::span<const std::byte> bytes) noexcept {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  std::array<uint64_t, 4> chains = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + sizeof(chains) <= bytes.size(); at += sizeof(chains)) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + at, sizeof(words));
    for (size_t i = 0; i < chains.size(); ++i) {
      chains[i] = (chains[i] ^ words[i]) * kMultiplier;
      chains[i] ^= chains[i] >> 32;
    }
  }
  for (; at < bytes.size(); ++at) chains[0] = (chains[0] ^ static_cast<uint64_t>(bytes[at])) * kMultiplier;
  uint64_t hash = bytes.size();
  for (const uint64_t chain : chains) {
    hash = (hash ^ chain) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace quern
