// Filters that give a number.
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "chat/jinja_arguments.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

// The digits of a number as Python's int() and float() accept them: white space around it, a '+', and '_' between
// digits. Empty if that is not their form.
std::string number_digits(std::string_view text) {
  std::string digits(strip(text, Side::kBoth));
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (digits.starts_with("+") || digits.find("__") != std::string::npos) return "";
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool between = i > 0 && i + 1 < digits.size() && std::isdigit(static_cast<unsigned char>(digits[i - 1])) &&
                         std::isdigit(static_cast<unsigned char>(digits[i + 1]));
    if (digits[i] == '_' && !between) return "";
  }
  std::erase(digits, '_');
  return digits;
}

std::optional<double> parse_float(std::string_view text) {
  const std::string digits = lower(number_digits(text));
  if (digits.find('(') != std::string::npos) return std::nullopt;  // from_chars accepts nan(...)
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_whole = !digits.empty() && end == digits.data() + digits.size();
  if (is_whole && error == std::errc::result_out_of_range) return std::strtod(digits.c_str(), nullptr);
  return is_whole && error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> parse_integer(const Budget& budget, std::string_view text) {
  const std::string digits = number_digits(text);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_whole = !digits.empty() && end == digits.data() + digits.size();
  if (is_whole && error == std::errc::result_out_of_range) budget.fail("an integer of more than 64 bits");
  return is_whole && error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> truncate(const Budget& budget, double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::abs(number) >= 0x1p63) budget.fail("an integer of more than 64 bits");
  return static_cast<int64_t>(number);
}

Value to_integer(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "int", arguments, {"default", "base"}, 0);
  if (bound.has(1) && bound.integer(1, 10) != 10) rendering.fail("'int' with another base than 10 is not supported");
  require_defined(rendering, input);
  std::optional<int64_t> result = input.integer();
  std::optional<double> number = input.number();
  if (const Text* text = input.text()) {
    rendering.allocate(text->bytes.size());
    result = parse_integer(rendering, text->bytes);
    number = parse_float(text->bytes);
  }
  if (!result && number && std::isinf(*number)) rendering.fail("infinity cannot be converted to an integer");
  if (!result && number) result = truncate(rendering, *number);
  if (result) return Value(*result);
  return bound.has(0) ? bound[0] : Value(0);
}

Value to_float(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "float", arguments, {"default"}, 0);
  require_defined(rendering, input);
  std::optional<double> number = input.number();
  if (const Text* text = input.text()) {
    rendering.allocate(text->bytes.size());
    number = parse_float(text->bytes);
  }
  if (number) return Value(*number);
  return bound.has(0) ? bound[0] : Value(0.0);
}

Value absolute(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "abs", arguments, {}, 0);
  require_defined(rendering, input);
  if (!input.number()) rendering.fail("'abs' of a '{}'", input.type());
  const bool is_negative = input.is_float() ? std::signbit(*input.number()) : *input.number() < 0;
  if (is_negative) return negate(rendering, input);
  return input.is_bool() ? Value(*input.integer()) : input;
}

// Python rounds the exact decimal value, halves to even, as printing with that many digits does.
double round_decimal(double number, int64_t digits) {
  if (!std::isfinite(number)) return number;
  return std::strtod(fmt::format("{:.{}f}", number, static_cast<int>(digits)).c_str(), nullptr);
}

Value round(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "round", arguments, {"precision", "method"}, 0);
  const int64_t digits = bound.integer(0, 0);
  const std::string method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") rendering.fail("'round' has no such method");
  if (digits < 0 || digits > 300) rendering.fail("'round' to {} digits is not supported", digits);
  require_defined(rendering, input);
  if (!input.number()) rendering.fail("'round' of a '{}'", input.type());
  if (method == "common")
    return input.is_float() ? Value(round_decimal(*input.number(), digits)) : Value(*input.integer());
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *input.number() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value length(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "length", arguments, {}, 0);
  if (input.is_undefined()) return Value(0);
  if (const Text* text = input.text()) return Value(text->characters);
  if (const Dict* dict = input.dict()) return Value(dict->entries().size());
  if (input.loop()) return Value(input.loop()->items->size());
  const bool has_length = input.sequence() && input.sequence()->kind != SequenceKind::kIterator;
  if (!has_length) rendering.fail("a value of type '{}' has no length", input.type());
  return Value(input.sequence()->items.size());
}

}  // namespace

Filter find_number_filter(std::string_view name) {
  constexpr std::pair<std::string_view, Filter> kFilters[] = {{"abs", absolute},   {"count", length},
                                                              {"float", to_float}, {"int", to_integer},
                                                              {"length", length},  {"round", round}};
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace quern::chat
