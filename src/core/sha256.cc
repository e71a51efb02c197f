#include "core/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace quern {
namespace {

using State = std::array<uint32_t, 8>;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(64) constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const std::byte* bytes) noexcept {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return std::endian::native == std::endian::big ? word : __builtin_bswap32(word);
}

// The roles of the eight variables rotate by one each round. Rotating the arguments over eight rounds avoids moves
// between registers.
inline void round(uint32_t a, uint32_t b, uint32_t c, uint32_t& d, uint32_t e, uint32_t f, uint32_t g, uint32_t& h,
                  uint32_t word) noexcept {
  const uint32_t choose = g ^ (e & (f ^ g));
  const uint32_t majority = (a & b) | (c & (a | b));
  const uint32_t t = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choose + word;
  d += t;
  h = t + (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
}

void compress_portable(State& state, const std::byte* block, size_t blocks) noexcept {
  for (; blocks > 0; --blocks, block += 64) {
    uint32_t w[64];
    for (size_t i = 0; i < 16; ++i) w[i] = load_big_endian(block + 4 * i);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; i += 8) {
      round(a, b, c, d, e, f, g, h, w[i] + kRounds[i]);
      round(h, a, b, c, d, e, f, g, w[i + 1] + kRounds[i + 1]);
      round(g, h, a, b, c, d, e, f, w[i + 2] + kRounds[i + 2]);
      round(f, g, h, a, b, c, d, e, w[i + 3] + kRounds[i + 3]);
      round(e, f, g, h, a, b, c, d, w[i + 4] + kRounds[i + 4]);
      round(d, e, f, g, h, a, b, c, w[i + 5] + kRounds[i + 5]);
      round(c, d, e, f, g, h, a, b, w[i + 6] + kRounds[i + 6]);
      round(b, c, d, e, f, g, h, a, w[i + 7] + kRounds[i + 7]);
    }
    const State change = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < state.size(); ++i) state[i] += change[i];
  }
}

#if defined(__x86_64__)
// The instructions do two rounds at a time on (a b e f) and (c d g h), the order in which they expect the state.
__attribute__((target("sha,sse4.1"))) void compress_sha(State& state, const std::byte* block, size_t blocks) noexcept {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&state[0]));
  __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&state[4]));
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; blocks > 0; --blocks, block += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];
    for (size_t i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), big_endian);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; ++i) {
      __m128i& words = w[i % 4];
      if (i >= 4) {  // computed from the previous sixteen words; `words` still holds the oldest four
        const __m128i recent = w[(i + 3) % 4];
        const __m128i minus7 = _mm_alignr_epi8(recent, w[(i + 2) % 4], 4);
        words = _mm_add_epi32(_mm_sha256msg1_epu32(words, w[(i + 1) % 4]), minus7);
        words = _mm_sha256msg2_epu32(words, recent);
      }
      const __m128i input = _mm_add_epi32(words, _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds.data()) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(input, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  dcba = _mm_blend_epi16(feba, dchg, 0xF0);
  hgfe = _mm_alignr_epi8(dchg, feba, 8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), dcba);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), hgfe);
}

bool has_sha() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}
#endif

}  // namespace

Sha256::Sha256(Code code) noexcept : compress_(compress_portable) {
#if defined(__x86_64__)
  static const bool fast = has_sha();
  if (code == Code::kFastest && fast) compress_ = compress_sha;
#else
  static_cast<void>(code);
#endif
}

void Sha256::update(std::span<const std::byte> piece) noexcept {
  const size_t waiting = length_ % kBlock;
  length_ += piece.size();
  if (waiting > 0) {
    const size_t taken = std::min(kBlock - waiting, piece.size());
    std::copy_n(piece.begin(), taken, pending_.begin() + static_cast<ptrdiff_t>(waiting));
    if (waiting + taken < kBlock) return;
    compress_(state_, pending_.data(), 1);
    piece = piece.subspan(taken);
  }
  compress_(state_, piece.data(), piece.size() / kBlock);
  const std::span<const std::byte> rest = piece.last(piece.size() % kBlock);
  std::copy(rest.begin(), rest.end(), pending_.begin());
}

// The message is padded with a 1 bit, zeros, and its length in bits as a 64-bit number that ends a block.
Sha256Digest Sha256::finish() noexcept {
  const uint64_t bits = length_ * 8;
  std::array<std::byte, 2 * kBlock> tail = {std::byte{0x80}};
  const size_t padding = (2 * kBlock - 8 - 1 - length_ % kBlock) % kBlock + 1;
  for (size_t i = 0; i < 8; ++i) tail[padding + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span(tail).first(padding + 8));

  Sha256Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  state_ = kInitial;
  length_ = 0;
  return digest;
}

std::string to_hex(const Sha256Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> message) {
  Sha256 hash;
  hash.update(message);
  return to_hex(hash.finish());
}

}  // namespace quern
