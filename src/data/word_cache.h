// A cache of the ids of short words: most words of a text are the same few thousand.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "core/aligned_buffer.h"

namespace quern::data {

// A direct-mapped table: each word has one slot and replaces its previous content. So memory is bounded, nothing is
// allocated after construction, and a word is one cache line. Not thread-safe.
class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 23;  // bytes
  static constexpr size_t kMaxIds = 9;

  // A word in comparable form: padded with zeros, with its length in the last byte.
  class Key {
   public:
    // 1 to kMaxWordBytes bytes.
    explicit Key(std::string_view word) noexcept {
      const char* const at = word.data();
      const size_t n = word.size();
      if (n < 8) {
        words_[0] = tail(at, n);
      } else {
        words_[0] = eight(at);
        if (n < 16) {
          words_[1] = tail(at + 8, n - 8);
        } else {
          words_[1] = eight(at + 8);
          words_[2] = tail(at + 16, n - 16);
        }
      }
      words_[2] |= uint64_t{n} << 56;
    }
    Key() noexcept = default;
    // Without the call of memcmp that comparing the arrays would be.
    friend bool operator==(const Key& a, const Key& b) noexcept {
      return ((a.words_[0] ^ b.words_[0]) | (a.words_[1] ^ b.words_[1]) | (a.words_[2] ^ b.words_[2])) == 0;
    }

    size_t where() const noexcept {
      uint64_t mixed = words_[0] * 0x9E3779B97F4A7C15u;
      mixed = (mixed ^ mixed >> 32 ^ words_[1]) * 0xC2B2AE3D27D4EB4Fu;
      mixed = (mixed ^ mixed >> 32 ^ words_[2]) * 0x165667B19E3779F9u;
      return static_cast<size_t>(mixed >> (64 - kBits));
    }

   private:
    static uint64_t eight(const char* at) noexcept {
      uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      return word;
    }
    // Less than eight bytes, by two loads that overlap: a copy of variable length would be a call.
    static uint64_t tail(const char* at, size_t n) noexcept {
      if (n >= 4) return two<uint32_t>(at, n);
      if (n >= 2) return two<uint16_t>(at, n);
      return n == 0 ? 0 : static_cast<unsigned char>(*at);
    }
    template <typename Half>
    static uint64_t two(const char* at, size_t n) noexcept {
      Half low = 0, high = 0;
      std::memcpy(&low, at, sizeof low);
      std::memcpy(&high, at + n - sizeof high, sizeof high);
      return low | uint64_t{high} << 8 * (n - sizeof high);
    }

    std::array<uint64_t, 3> words_{};  // all zero: no word, since words are not empty
  };

  WordCache() : slots_(size_t{1} << kBits, Fill::kZero) {}

  // The ids of a cached word; nullopt otherwise. Valid until the next put().
  std::optional<std::span<const int32_t>> find(const Key& key) const noexcept {
    const Slot& slot = slots_[key.where()];
    if (slot.key != key) return std::nullopt;
    return std::span(slot.ids).first(slot.count);
  }

  // Does nothing if there are more than kMaxIds ids.
  void put(const Key& key, std::span<const int32_t> ids) noexcept {
    if (ids.size() > kMaxIds) return;
    Slot& slot = slots_[key.where()];
    slot.key = key;
    slot.count = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr int kBits = 16;  // 4 MB: 1.3 times as fast as 1 MB on 5 MB of English

  struct alignas(64) Slot {
    Key key;
    uint32_t count = 0;
    std::array<int32_t, kMaxIds> ids{};
  };
  static_assert(sizeof(Slot) == 64);

  AlignedBuffer<Slot> slots_;
};

}  // namespace quern::data
