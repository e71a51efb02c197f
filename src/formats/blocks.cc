#include "formats/blocks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/convert.h"

namespace quern::formats {
namespace {

using kernels::Half;

constexpr size_t kBlock = 32;
constexpr size_t kPiece = 1024;  // values that are copied to aligned memory at a time

float half_at(const std::byte* at) noexcept {
  Half bits = 0;
  float value = 0;
  std::memcpy(&bits, at, sizeof(bits));
  kernels::from_f16(&bits, &value, 1);
  return value;
}

uint8_t byte_at(const std::byte* at) noexcept { return static_cast<uint8_t>(*at); }

void decode_q8_0(const std::byte* in, float* out) noexcept {
  const float d = half_at(in);
  for (size_t i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(in[2 + i]));
}

void decode_q4_0(const std::byte* in, float* out) noexcept {
  const float d = half_at(in);
  for (size_t i = 0; i < kBlock / 2; ++i) {
    const uint8_t both = byte_at(in + 2 + i);
    out[i] = d * static_cast<float>((both & 15) - 8);
    out[i + kBlock / 2] = d * static_cast<float>((both >> 4) - 8);
  }
}

void decode_q4_1(const std::byte* in, float* out) noexcept {
  const float d = half_at(in), m = half_at(in + 2);
  for (size_t i = 0; i < kBlock / 2; ++i) {
    const uint8_t both = byte_at(in + 4 + i);
    out[i] = d * static_cast<float>(both & 15) + m;
    out[i + kBlock / 2] = d * static_cast<float>(both >> 4) + m;
  }
}

void encode_q8_0(const float* in, std::byte* out) noexcept {
  float largest = 0;
  for (size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(in[i]));
  const float d = largest / 127.0f;
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  Half bits = 0;
  kernels::to_f16(&d, &bits, 1);
  std::memcpy(out, &bits, sizeof(bits));
  for (size_t i = 0; i < kBlock; ++i) {
    // A NaN, which no conversion to an integer defines, becomes 0; the rest is in range but for a subnormal d.
    const float q = std::clamp(std::round(in[i] * inverse), -127.0f, 127.0f);
    out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(q == q ? q : 0.0f));
  }
}

using DecodeBlock = void (*)(const std::byte* in, float* out) noexcept;

void decode_blocks(DecodeBlock block, size_t bytes, std::span<const std::byte> in, std::span<float> out) noexcept {
  for (size_t i = 0; i < out.size() / kBlock; ++i) block(in.data() + i * bytes, out.data() + i * kBlock);
}

// Files align tensors to bytes; the kernels take pointers to 16-bit numbers.
void widen(kernels::DType type, std::span<const std::byte> in, std::span<float> out) noexcept {
  std::array<Half, kPiece> bits;
  for (size_t at = 0; at < out.size(); at += kPiece) {
    const size_t count = std::min(kPiece, out.size() - at);
    std::memcpy(bits.data(), in.data() + at * sizeof(Half), count * sizeof(Half));
    kernels::widen(type, bits.data(), out.data() + at, count);
  }
}

void narrow(kernels::DType type, std::span<const float> in, std::span<std::byte> out) noexcept {
  std::array<Half, kPiece> bits;
  for (size_t at = 0; at < in.size(); at += kPiece) {
    const size_t count = std::min(kPiece, in.size() - at);
    kernels::narrow(type, in.data() + at, bits.data(), count);
    std::memcpy(out.data() + at * sizeof(Half), bits.data(), count * sizeof(Half));
  }
}

}  // namespace

size_t encoded_bytes(GgmlType type, size_t count) noexcept {
  const GgmlTypeFacts facts = facts_of(type);
  assert(count % facts.elements == 0);
  return count / facts.elements * facts.bytes;
}

void decode(GgmlType type, std::span<const std::byte> in, std::span<float> out) noexcept {
  assert(is_convertible(type) && in.size() == encoded_bytes(type, out.size()));
  switch (type) {
    case GgmlType::kF32:
      if (!out.empty()) std::memcpy(out.data(), in.data(), in.size());
      return;
    case GgmlType::kF16:
      return widen(kernels::DType::kF16, in, out);
    case GgmlType::kBF16:
      return widen(kernels::DType::kBF16, in, out);
    case GgmlType::kQ8_0:
      return decode_blocks(decode_q8_0, 34, in, out);
    case GgmlType::kQ4_0:
      return decode_blocks(decode_q4_0, 18, in, out);
    case GgmlType::kQ4_1:
      return decode_blocks(decode_q4_1, 20, in, out);
  }
}

void encode(GgmlType type, std::span<const float> in, std::span<std::byte> out) noexcept {
  assert(out.size() == encoded_bytes(type, in.size()));
  switch (type) {
    case GgmlType::kF32:
      if (!in.empty()) std::memcpy(out.data(), in.data(), out.size());
      return;
    case GgmlType::kF16:
      return narrow(kernels::DType::kF16, in, out);
    case GgmlType::kBF16:
      return narrow(kernels::DType::kBF16, in, out);
    case GgmlType::kQ8_0:
      for (size_t i = 0; i < in.size() / kBlock; ++i) encode_q8_0(in.data() + i * kBlock, out.data() + i * 34);
      return;
    default:
      assert(!"not a format that is written");
  }
}

}  // namespace quern::formats
