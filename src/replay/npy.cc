#include "replay/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace quern::replay {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::array<std::string_view, 12> kDescriptions = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4",
                                                            "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"};

// Parses the dictionary literal written by NumPy: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class Literal {
 public:
  Literal(std::string_view text, std::string_view where) : rest_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    unsigned seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        header.dtype = dtype();
        seen |= 1;
      } else if (key == "fortran_order") {
        order();
        seen |= 2;
      } else if (key == "shape") {
        header.shape = shape();
        seen |= 4;
      } else {
        fail(fmt::format("expected descr, fortran_order or shape, found {}", in_quotes(key)));
      }
      if (!take(',') && !ahead('}')) fail("expected a comma");
    }
    skip_spaces();
    if (!rest_.empty() || seen != 7) fail("expected descr, fortran_order and shape");
    if (fortran_ && header.shape.size() > 1) fail("expected an array in C order, found one in Fortran order");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error("{}: {}", where_, what); }

  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool ahead(char c) {
    skip_spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(char c) {
    if (!ahead(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("expected '{}' in the header", c));
  }

  std::string_view quoted() {
    skip_spaces();
    const char quote = ahead('"') ? '"' : '\'';
    expect(quote);
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail("expected a closing quote in the header");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  DType dtype() {
    if (!ahead('\'') && !ahead('"')) fail("expected an array of numbers, found a structured one");
    const std::string_view text = quoted();
    const auto found = std::find(kDescriptions.begin(), kDescriptions.end(), text);
    if (found == kDescriptions.end()) {
      fail(fmt::format("expected one of {}, found {}", fmt::join(kDescriptions, " "), in_quotes(text)));
    }
    return static_cast<DType>(found - kDescriptions.begin());
  }

  void order() {
    skip_spaces();
    fortran_ = rest_.starts_with("True");
    if (!fortran_ && !rest_.starts_with("False")) fail("expected True or False for fortran_order");
    rest_.remove_prefix(fortran_ ? 4 : 5);
  }

  std::vector<size_t> shape() {
    constexpr size_t kMax = 64;
    std::vector<size_t> extents;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      uint64_t extent = 0;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (code != std::errc() || extents.size() == kMax) fail("expected a shape of whole numbers");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      extents.push_back(extent);
      if (!take(',') && !ahead(')')) fail("expected a comma in the shape");
    }
    return extents;
  }

  std::string_view rest_;
  std::string_view where_;
  bool fortran_ = false;
};

}  // namespace

std::string npy_header(const NpyHeader& header) {
  std::string shape;
  for (const size_t extent : header.shape) shape += fmt::format("{}, ", extent);
  if (header.shape.size() > 1) shape.resize(shape.size() - 2);  // (3, 4), but (3, ) for one dimension
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 kDescriptions[static_cast<size_t>(header.dtype)], shape);
  constexpr size_t kAlign = 64;
  const size_t before = kMagic.size() + 4;
  text.append((kAlign - (before + text.size() + 1) % kAlign) % kAlign, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());  // a shape of 32 numbers has less than 800 bytes
  std::string start(kMagic);
  start += '\1';
  start += '\0';
  start.append(reinterpret_cast<const char*>(&length), sizeof length);
  return start + text;
}

NpyHeader read_npy_header(const std::function<void(std::span<std::byte>)>& read, std::string_view where) {
  constexpr uint32_t kMaxLength = 65536;
  std::array<char, 8> start{};
  read(std::as_writable_bytes(std::span(start)));
  if (std::string_view(start.data(), kMagic.size()) != kMagic) throw Error("{}: expected a NumPy array", where);
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) throw Error("{}: expected a .npy of version 1 to 3, found {}", where, version);
  uint32_t length = 0;
  read(std::as_writable_bytes(std::span(&length, 1)).first(version == 1 ? 2 : 4));
  if (length > kMaxLength)
    throw Error("{}: expected a header of at most {} bytes, found {}", where, kMaxLength, length);
  std::string text(length, '\0');
  read(std::as_writable_bytes(std::span(text)));
  return Literal(text, where).parse();
}

}  // namespace quern::replay
