// Conversion of other encodings to UTF-8 while they are read.
#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "data/encoding.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

using Kind = TextForm::Kind;

// U+0080 to U+009F in Windows-1252; 0 where it has none.
constexpr std::array<uint16_t, 32> kWindows = {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                               0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                               0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                               0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

class Utf8Reader final : public ByteReader {
 public:
  Utf8Reader(const TextForm& form, std::unique_ptr<ByteReader> bytes, std::string name)
      : kind_(form.kind), bytes_(std::move(bytes)), name_(std::move(name)), at_(form.mark) {
    bytes_->skip(form.mark);
  }

  uint64_t consumed() const override { return bytes_->consumed(); }

  size_t read(std::span<char> out) override {
    while (used_ == text_.size()) {
      if (!convert_block()) return 0;
    }
    const size_t count = std::min(out.size(), text_.size() - used_);
    std::copy_n(text_.data() + used_, count, out.data());
    used_ += count;
    return count;
  }

 private:
  static constexpr size_t kBlockBytes = size_t{64} << 10;

  // Returns false at the end.
  bool convert_block() {
    text_.clear();
    used_ = 0;
    const bool more = read_until(*bytes_, kBlockBytes, block_);
    if (block_.empty()) return false;
    const bool wide = kind_ == Kind::kUtf16Le || kind_ == Kind::kUtf16Be;
    const size_t done = wide ? convert_wide(more) : convert_narrow();
    block_.erase(0, done);
    at_ += done;
    return true;
  }

  unsigned byte_at(size_t i) const { return static_cast<unsigned char>(block_[i]); }

  size_t convert_narrow() {
    for (size_t i = 0; i < block_.size(); ++i) {
      const unsigned byte = byte_at(i);
      if (byte == 0) check_utf8(std::string_view(block_).substr(i), name_, at_ + i);  // says that it is binary
      const bool control = byte >= 0x80 && byte < 0xA0;
      const uint32_t character = control && kind_ == Kind::kWindows1252 ? kWindows[byte - 0x80] : byte;
      if (control && (kind_ == Kind::kLatin1 || character == 0)) fail_narrow(i, byte);
      append_utf8(character, text_);
    }
    return block_.size();
  }

  [[noreturn]] void fail_narrow(size_t i, unsigned byte) const {
    const bool windows = kind_ == Kind::kWindows1252 || kWindows[byte - 0x80] == 0;
    throw Error("[data] {}: byte {}: expected {}, as data.encoding says, found byte 0x{:02x}, which is no character{}",
                name_, at_ + i, name_of(kind_), byte, windows ? "" : "; set data.encoding=windows-1252, where it is");
  }

  unsigned unit(size_t i) const {
    const unsigned first = byte_at(i), second = byte_at(i + 1);
    return kind_ == Kind::kUtf16Le ? first | second << 8 : first << 8 | second;
  }

  size_t convert_wide(bool more) {
    size_t i = 0;
    while (i < block_.size()) {
      if (block_.size() - i < 2) {
        if (more) return i;
        fail_wide(i, "half a character at the end");
      }
      uint32_t character = unit(i);
      if (character == 0) fail_wide(i, "U+0000");
      size_t length = 2;
      if (character >= 0xD800 && character < 0xE000) {
        if (block_.size() - i < 4 && more) return i;
        if (character >= 0xDC00 || block_.size() - i < 4) fail_wide(i, "half of a surrogate pair");
        const unsigned low = unit(i + 2);
        if (low < 0xDC00 || low >= 0xE000) fail_wide(i, "half of a surrogate pair");
        character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
        length = 4;
      }
      append_utf8(character, text_);
      i += length;
    }
    return i;
  }

  [[noreturn]] void fail_wide(size_t i, std::string_view found) const {
    throw Error("[data] {}: byte {}: expected {}, found {}", name_, at_ + i, name_of(kind_), found);
  }

  Kind kind_;
  std::unique_ptr<ByteReader> bytes_;
  std::string name_;
  uint64_t at_;        // position of block_
  std::string block_;  // bytes that are not converted yet
  std::string text_;   // UTF-8
  size_t used_ = 0;
};

}  // namespace

std::unique_ptr<ByteReader> to_utf8(const TextForm& form, std::unique_ptr<ByteReader> bytes, std::string name) {
  return std::make_unique<Utf8Reader>(form, std::move(bytes), std::move(name));
}

}  // namespace quern::data
