// Protocol buffer encoding, limited to what TensorBoard's event files need.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quern::report {

// A message, built field by field. A field is a varint with its number and type, followed by the value. Numbers are
// little-endian. A nested message is stored as its bytes.
class ProtoMessage {
 public:
  ProtoMessage& integer(uint32_t field, uint64_t value) {
    tag(field, kVarint);
    varint(value);
    return *this;
  }
  ProtoMessage& real(uint32_t field, double value) {
    tag(field, kFixed64);
    fixed(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  ProtoMessage& real32(uint32_t field, float value) {
    tag(field, kFixed32);
    fixed(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  ProtoMessage& text(uint32_t field, std::string_view value) {
    tag(field, kLength);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoMessage& message(uint32_t field, const ProtoMessage& value) { return text(field, value.bytes_); }
  // Repeated doubles, packed.
  ProtoMessage& reals(uint32_t field, std::span<const double> values) {
    tag(field, kLength);
    varint(values.size() * 8);
    for (const double value : values) fixed(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  enum Kind : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  void tag(uint32_t field, Kind kind) { varint(uint64_t{field} << 3 | kind); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
    bytes_ += static_cast<char>(value);
  }
  void fixed(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  std::string bytes_;
};

}  // namespace quern::report
