#include "core/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace quern {
namespace {

constexpr std::string_view kUnits = "KMGT";

// The multiplier of a unit; 0 if it is not valid. "", "K", "KB", "KiB", and lowercase.
uint64_t factor_of(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  const char first = unit.front() >= 'a' ? static_cast<char>(unit.front() - 'a' + 'A') : unit.front();
  const size_t power = kUnits.find(first);
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return 0;
  return uint64_t{1} << (10 * (power + 1));
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (code != std::errc{} || !(number >= 0)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(stop - text.data()));
  if (unit.size() > 1 && unit.front() == ' ') unit.remove_prefix(1);
  const uint64_t factor = factor_of(unit);
  const double bytes = std::floor(number * static_cast<double>(factor));
  if (factor == 0 || bytes > 0x1p62) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::string exact_bytes(uint64_t bytes) {
  size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit < kUnits.size()) bytes /= 1024, ++unit;
  return fmt::format("{}{}", bytes, unit == 0 ? "" : std::string(1, kUnits[unit - 1]));
}

std::string rounded_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1000 && unit + 1 < kNames.size()) amount /= 1024, ++unit;
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", amount, amount < 10 ? 2 : amount < 100 ? 1 : 0, kNames[unit]);
}

}  // namespace quern
