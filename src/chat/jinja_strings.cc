// String literals of templates: the escapes of Python.
#include <algorithm>
#include <optional>

#include "chat/jinja_lexer.h"
#include "data/utf8.h"

namespace quern::chat {
namespace {

std::optional<uint32_t> digit_value(char c, uint32_t base) {
  uint32_t value = 99;
  if (c >= '0' && c <= '9') value = static_cast<uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') value = static_cast<uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') value = static_cast<uint32_t>(c - 'A' + 10);
  return value < base ? std::optional(value) : std::nullopt;
}

class StringDecoder {
 public:
  StringDecoder(std::string_view body, const Budget& budget) : body_(body), budget_(budget) {}

  std::string run() {
    while (at_ < body_.size()) {
      const char c = body_[at_++];
      if (c != '\\' || at_ == body_.size()) {
        text_ += c;
      } else {
        decode_escape(body_[at_++]);
      }
    }
    return std::move(text_);
  }

 private:
  void decode_escape(char c) {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t found = kNames.find(c); found != std::string_view::npos) {
      text_ += kValues[found];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_number(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (digit_value(c, 8)) {
      append_octal();
    } else if (c == 'N') {
      budget_.fail("characters by name (\\N) are not supported");
    } else if (c != '\n') {  // a backslash joins two lines; before anything else it stands for itself
      text_ += '\\';
      text_ += c;
    }
  }

  void append_number(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const auto digit = at_ < body_.size() ? digit_value(body_[at_], 16) : std::nullopt;
      if (!digit) budget_.fail("expected {} hexadecimal digits after a backslash", digits);
      value = value << 4 | *digit;
    }
    if (value > data::kMaxCodePoint || (value >= 0xD800 && value < 0xE000)) {
      budget_.fail("there is no character U+{:04X}", value);
    }
    data::append_utf8(value, text_);
  }

  void append_octal() {
    uint32_t value = 0;
    --at_;
    for (size_t i = 0; i < 3 && at_ < body_.size(); ++i, ++at_) {
      const auto digit = digit_value(body_[at_], 8);
      if (!digit) break;
      value = value << 3 | *digit;
    }
    data::append_utf8(value, text_);
  }

  std::string_view body_;
  const Budget& budget_;
  std::string text_;
  size_t at_ = 0;
};

}  // namespace

std::string decode_string(std::string_view literal, const Budget& budget) {
  return StringDecoder(literal.substr(1, literal.size() - 2), budget).run();
}

}  // namespace quern::chat
