#include "core/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace quern {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, lowest bit first

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)

// The effect of n zero bytes on a CRC is linear in its bits: a matrix of 32 columns.
using Matrix = std::array<uint32_t, 32>;

constexpr uint32_t times(const Matrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (size_t bit = 0; bit < 32; ++bit) sum ^= (vector >> bit & 1) != 0 ? matrix[bit] : 0;
  return sum;
}

constexpr Matrix square(const Matrix& matrix) {
  Matrix result{};
  for (size_t bit = 0; bit < 32; ++bit) result[bit] = times(matrix, matrix[bit]);
  return result;
}

// The same as four tables, one per byte of the CRC: four loads instead of 32 steps.
struct Shift {
  std::array<std::array<uint32_t, 256>, 4> tables{};

  // Shifts over 2^log_bytes zero bytes.
  explicit constexpr Shift(int log_bytes) {
    Matrix matrix{};  // for one zero bit
    matrix[0] = kPolynomial;
    for (size_t bit = 1; bit < 32; ++bit) matrix[bit] = uint32_t{1} << (bit - 1);
    for (int i = 0; i < log_bytes + 3; ++i) matrix = square(matrix);
    for (size_t byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) tables[byte][value] = times(matrix, value << (8 * byte));
    }
  }

  uint32_t operator()(uint32_t crc) const noexcept {
    return tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24];
  }
};

// The instruction processes eight bytes, with a latency of three cycles and a throughput of one per cycle: three
// interleaved streams keep it busy. They are combined by shifting the first over the length of the second. Long runs
// make combining (about 20 cycles) negligible; short runs handle blocks of a few hundred bytes.
constexpr int kLogLong = 12;
constexpr int kLogShort = 8;
constexpr Shift kOverLong(kLogLong);
constexpr Shift kOverShort(kLogShort);

__attribute__((target("sse4.2"))) inline uint64_t step(uint64_t crc, const char* bytes) noexcept {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return _mm_crc32_u64(crc, word);
}

// Processes as many runs of 3 << log_bytes as possible; `bytes` becomes the remainder.
__attribute__((target("sse4.2"))) inline uint32_t runs(uint32_t crc, std::string_view& bytes, int log_bytes,
                                                       const Shift& over) noexcept {
  const size_t length = size_t{1} << log_bytes;
  while (bytes.size() >= 3 * length) {
    uint64_t a = crc, b = 0, c = 0;
    const char* p = bytes.data();
    for (size_t i = 0; i < length; i += 8) {
      a = step(a, p + i);
      b = step(b, p + length + i);
      c = step(c, p + 2 * length + i);
    }
    crc = over(over(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b)) ^ static_cast<uint32_t>(c);
    bytes.remove_prefix(3 * length);
  }
  return crc;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(std::string_view bytes) noexcept {
  uint32_t crc = ~uint32_t{0};
  crc = runs(crc, bytes, kLogLong, kOverLong);
  crc = runs(crc, bytes, kLogShort, kOverShort);
  uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) wide = step(wide, bytes.data());
  crc = static_cast<uint32_t>(wide);
  for (const char byte : bytes) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(byte));
  return ~crc;
}

#endif

}  // namespace

uint32_t crc32c_by_table(std::string_view bytes) noexcept {
  uint32_t value = ~uint32_t{0};
  for (const char byte : bytes) value = kTable[(value ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (value >> 8);
  return ~value;
}

uint32_t crc32c(std::string_view bytes) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  return crc32c(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace quern
