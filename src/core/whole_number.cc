#include "core/whole_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace quern {
namespace {

constexpr size_t kMaxLength = 60;  // of the text; also bounds the exponent to what an int holds after the check below
constexpr int kMaxExponent = 100;  // far beyond 64 bits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits with underscores removed; nullopt unless every underscore is between two digits.
std::optional<std::string> digits_of(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (text[i] == '_' && between) continue;
    if (!is_digit(text[i])) return std::nullopt;
    digits += text[i];
  }
  return digits;
}

std::optional<int> exponent_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::abs(value) <= kMaxExponent ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> value_of(std::string_view digits) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  uint64_t value = 0;
  if (digits.empty()) return value;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return code == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> parse_whole_number(std::string_view text) {
  if (text.size() > kMaxLength) return std::nullopt;
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, e);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const auto whole = digits_of(mantissa.substr(0, point));
  const auto fraction = digits_of(mantissa.substr(std::min(point + 1, mantissa.size())));
  const auto exponent = e == text.size() ? std::optional(0) : exponent_of(text.substr(e + 1));
  if (!whole || !fraction || !exponent || whole->empty()) return std::nullopt;
  std::string digits = *whole + *fraction;
  const int scale = *exponent - static_cast<int>(fraction->size());
  if (scale >= 0) return value_of(digits + std::string(static_cast<size_t>(scale), '0'));
  const size_t lost = std::min(static_cast<size_t>(-scale), digits.size());
  const size_t kept = digits.size() - lost;
  if (digits.find_first_not_of('0', kept) != std::string::npos) return std::nullopt;
  return value_of(std::string_view(digits).substr(0, kept));
}

std::string whole_number_hint(std::string_view text) {
  if (text.empty()) return {};
  const std::string_view number = text.substr(0, text.size() - 1);
  const char suffix = static_cast<char>(std::tolower(static_cast<unsigned char>(text.back())));
  const int exponent = suffix == 'k' ? 3 : suffix == 'm' ? 6 : suffix == 'g' || suffix == 'b' ? 9 : 0;
  const std::string written = fmt::format("{}e{}", number, exponent);
  const bool plain = number.find_first_of("eE") == std::string_view::npos && parse_whole_number(written).has_value();
  return exponent > 0 && plain ? "; write " + written : std::string();
}

}  // namespace quern
