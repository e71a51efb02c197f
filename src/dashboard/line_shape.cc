#include "dashboard/line_shape.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace quern::dashboard {
namespace {

constexpr int kMaxDigits = 19;  // fit into 64 bits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

double power_of_ten(int exponent) {
  static constexpr double kExact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  return exponent < 23 ? kExact[exponent] : std::pow(10.0, exponent);
}

double scaled(uint64_t digits, int exponent) {
  const auto number = static_cast<double>(digits);
  if (digits == 0) return 0;
  if (exponent > 310) return std::numeric_limits<double>::infinity();
  if (exponent >= 0) return number * power_of_ten(exponent);
  if (exponent >= -300) return number / power_of_ten(-exponent);
  return exponent < -350 ? 0 : number / 1e300 / power_of_ten(-exponent - 300);
}

bool read_word(const char*& text, const char* end, std::string_view word) {
  if (static_cast<size_t>(end - text) < word.size() || std::memcmp(text, word.data(), word.size()) != 0) return false;
  text += word.size();
  return true;
}

// Digits of a number so far; those beyond the 19th are counted only.
struct Digits {
  uint64_t value = 0;
  int kept = 0, dropped = 0, decimals = 0;

  void add(char c, bool decimal) {
    if (kept == kMaxDigits) {
      dropped += decimal ? 0 : 1;
      return;
    }
    value = 10 * value + static_cast<uint64_t>(c - '0');
    if (value > 0) ++kept;
    if (decimal) ++decimals;
  }
};

// e-5; the exponent is cut off where the result is 0 or infinite anyway.
bool read_exponent(const char*& text, const char* end, int& exponent) {
  ++text;
  const bool negative = text < end && *text == '-';
  if (text < end && (*text == '-' || *text == '+')) ++text;
  if (text == end || !is_digit(*text)) return false;
  int value = 0;
  for (; text < end && is_digit(*text); ++text) value = value < 100'000 ? 10 * value + (*text - '0') : value;
  exponent = negative ? -value : value;
  return true;
}

bool read_number(const char*& text, const char* end, LineValue& value) {
  const bool negative = text < end && *text == '-';
  if (negative) ++text;
  if (text == end || !is_digit(*text)) return false;
  if (*text == '0' && end - text > 1 && is_digit(text[1])) return false;
  Digits digits;
  for (; text < end && is_digit(*text); ++text) digits.add(*text, false);
  value.whole = !negative && digits.dropped == 0;
  if (text < end && *text == '.') {
    value.whole = false;
    ++text;
    if (text == end || !is_digit(*text)) return false;
    for (; text < end && is_digit(*text); ++text) digits.add(*text, true);
  }
  int exponent = 0;
  if (text < end && (*text == 'e' || *text == 'E')) {
    value.whole = false;
    if (!read_exponent(text, end, exponent)) return false;
  }
  const double number = scaled(digits.value, exponent + digits.dropped - digits.decimals);
  value.number = negative ? -number : number;
  value.digits = digits.value;
  return std::isfinite(number);
}

// Walks through the text of a JSON object.
class Walk {
 public:
  explicit Walk(std::string_view line) : text_(line.data()), end_(line.data() + line.size()) {}

  bool at_end() const { return text_ == end_; }
  char here() const { return *text_; }
  const char* position() const { return text_; }
  const char*& text() { return text_; }
  const char* end() const { return end_; }
  void skip() { ++text_; }

  // The text between two quotation marks; the first one is here.
  bool read_string(std::string_view& string) {
    const char* begin = ++text_;
    for (; text_ < end_ && *text_ != '"'; ++text_) {
      if (*text_ == '\\' && ++text_ == end_) return false;
    }
    if (text_ == end_) return false;
    string = {begin, static_cast<size_t>(text_ - begin)};
    ++text_;
    return true;
  }

 private:
  const char* text_;
  const char* end_;
};

}  // namespace

bool read_value(const char*& text, const char* end, LineValue& value) noexcept {
  value.whole = false;
  if (text == end) return false;
  switch (*text) {
    case 'n':
      value.number = std::numeric_limits<double>::quiet_NaN();
      return read_word(text, end, "null");
    case 't':
      value.number = 1;
      return read_word(text, end, "true");
    case 'f':
      value.number = 0;
      return read_word(text, end, "false");
    default:
      return read_number(text, end, value);
  }
}

std::optional<LineShape> LineShape::of(std::string_view line, std::vector<std::vector<std::string_view>>& paths) {
  LineShape shape;
  paths.clear();
  std::vector<std::string_view> path;
  bool after_colon = false;
  const char* begin = line.data();
  for (Walk walk(line); !walk.at_end();) {
    const char c = walk.here();
    if (c == '"') {
      std::string_view name;
      if (after_colon || path.empty() || !walk.read_string(name)) return std::nullopt;
      path.back() = name;
    } else if (c == '[' || c == ']') {
      return std::nullopt;
    } else if (c == '{') {
      path.emplace_back();
      after_colon = false;
      walk.skip();
    } else if (c == '}') {
      if (path.empty()) return std::nullopt;
      path.pop_back();
      walk.skip();
    } else if (c == ':' || c == ',' || c == ' ' || c == '\t' || c == '\r') {
      if (c == ':' || c == ',') after_colon = c == ':';
      walk.skip();
    } else {
      LineValue value;
      shape.text_.append(begin, walk.position());
      if (!after_colon || path.empty() || !read_value(walk.text(), walk.end(), value)) return std::nullopt;
      shape.ends_.push_back(shape.text_.size());
      paths.push_back(path);
      begin = walk.position();
    }
  }
  shape.text_.append(begin, line.data() + line.size());
  return shape;
}

bool LineShape::read(std::string_view line, std::span<LineValue> values) const noexcept {
  const char* text = line.data();
  const char* const end = text + line.size();
  const auto matches = [&](size_t from, size_t to) {
    const size_t size = to - from;
    if (static_cast<size_t>(end - text) < size || std::memcmp(text, text_.data() + from, size) != 0) return false;
    text += size;
    return true;
  };
  size_t from = 0;
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (!matches(from, ends_[i]) || !read_value(text, end, values[i])) return false;
    from = ends_[i];
  }
  return matches(from, text_.size()) && text == end;
}

}  // namespace quern::dashboard
