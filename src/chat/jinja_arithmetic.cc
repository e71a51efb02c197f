// + - * / // % **
#include <cmath>
#include <string>

#include "chat/jinja_operators.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_types(const Budget& budget, Arithmetic operation, const Value& left, const Value& right) {
  budget.fail("unsupported operands for {}: '{}' and '{}'", kSigns[static_cast<size_t>(operation)], left.type(),
              right.type());
}

[[noreturn]] void fail_overflow(const Budget& budget) { budget.fail("an integer of more than 64 bits"); }

int64_t integer_power(const Budget& budget, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow(budget);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow(budget);
  }
  return result;
}

int64_t floor_modulo(int64_t left, int64_t right) {
  if (right == -1) return 0;  // INT64_MIN % -1 overflows
  const int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

int64_t floor_divide(const Budget& budget, int64_t left, int64_t right) {
  if (left == INT64_MIN && right == -1) fail_overflow(budget);
  return left / right - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

double floor_modulo(double left, double right) {
  double rest = std::fmod(left, right);
  if (rest != 0 && (rest < 0) != (right < 0)) rest += right;
  return rest == 0 ? std::copysign(0.0, right) : rest;
}

double floor_divide(double left, double right) {
  const double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0 && (rest < 0) != (right < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double float_power(const Budget& budget, double base, double exponent) {
  if (base == 0 && exponent < 0) budget.fail("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(exponent) && std::floor(exponent) != exponent) {
    budget.fail("a negative number raised to a fraction is a complex number");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) budget.fail("the number is too large");
  return result;
}

Value calculate_integers(const Budget& budget, Arithmetic operation, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (operation) {
    case Arithmetic::kAdd:
      return __builtin_add_overflow(left, right, &result) ? fail_overflow(budget) : void(), Value(result);
    case Arithmetic::kSubtract:
      return __builtin_sub_overflow(left, right, &result) ? fail_overflow(budget) : void(), Value(result);
    case Arithmetic::kMultiply:
      return __builtin_mul_overflow(left, right, &result) ? fail_overflow(budget) : void(), Value(result);
    case Arithmetic::kFloorDivide:
      return Value(floor_divide(budget, left, right));
    case Arithmetic::kModulo:
      return Value(floor_modulo(left, right));
    case Arithmetic::kPower:
      if (right >= 0) return Value(integer_power(budget, left, right));
      return Value(float_power(budget, static_cast<double>(left), static_cast<double>(right)));
    case Arithmetic::kDivide:
      break;
  }
  return Value(static_cast<double>(left) / static_cast<double>(right));
}

Value calculate_floats(const Budget& budget, Arithmetic operation, double left, double right) {
  switch (operation) {
    case Arithmetic::kAdd:
      return Value(left + right);
    case Arithmetic::kSubtract:
      return Value(left - right);
    case Arithmetic::kMultiply:
      return Value(left * right);
    case Arithmetic::kDivide:
      return Value(left / right);
    case Arithmetic::kFloorDivide:
      return Value(floor_divide(left, right));
    case Arithmetic::kModulo:
      return Value(floor_modulo(left, right));
    case Arithmetic::kPower:
      break;
  }
  return Value(float_power(budget, left, right));
}

bool is_list_or_tuple(const Value& value) {
  const Sequence* items = value.sequence();
  return items && (items->kind == SequenceKind::kList || items->kind == SequenceKind::kTuple);
}

Value join_markup(Budget& budget, const Text& left, const Text& right) {
  const auto escaped = [](const Text& text) { return text.is_markup ? text.bytes : escape_html(text.bytes); };
  return make_markup(budget, escaped(left) + escaped(right));
}

Value join(Budget& budget, const Value& left, const Value& right) {
  if (left.text() && right.text()) {
    budget.allocate(left.text()->bytes.size() + right.text()->bytes.size());
    if (left.text()->is_markup || right.text()->is_markup) return join_markup(budget, *left.text(), *right.text());
    return make_text(budget, left.text()->bytes + right.text()->bytes);
  }
  const bool same =
      is_list_or_tuple(left) && is_list_or_tuple(right) && left.sequence()->kind == right.sequence()->kind;
  if (!same) fail_types(budget, Arithmetic::kAdd, left, right);
  budget.read((left.sequence()->items.size() + right.sequence()->items.size()) * sizeof(Value));
  Values items = left.sequence()->items;
  items.insert(items.end(), right.sequence()->items.begin(), right.sequence()->items.end());
  return make_sequence(budget, left.sequence()->kind, std::move(items));
}

// Counts the result before it exists.
void allocate_repeated(Budget& budget, size_t bytes, size_t count) {
  size_t total = 0;
  if (__builtin_mul_overflow(bytes, count, &total)) total = kMaxComputedBytes + 1;
  budget.allocate(total);
}

Value repeat(Budget& budget, const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (const Text* text = value.text()) {
    allocate_repeated(budget, text->bytes.size(), count);
    std::string result;
    for (size_t i = 0; i < count && !text->bytes.empty(); ++i) result += text->bytes;
    return make_text(budget, std::move(result));
  }
  const Values& items = value.sequence()->items;
  allocate_repeated(budget, items.size() * sizeof(Value), count);
  Values result;
  for (size_t i = 0; i < count && !items.empty(); ++i) result.insert(result.end(), items.begin(), items.end());
  return make_sequence(budget, value.sequence()->kind, std::move(result));
}

Value calculate_others(Budget& budget, Arithmetic operation, const Value& left, const Value& right) {
  const auto repeats = [](const Value& value) { return value.text() || is_list_or_tuple(value); };
  if (operation == Arithmetic::kAdd) return join(budget, left, right);
  if (operation == Arithmetic::kMultiply && repeats(left) && right.integer())
    return repeat(budget, left, *right.integer());
  if (operation == Arithmetic::kMultiply && repeats(right) && left.integer())
    return repeat(budget, right, *left.integer());
  fail_types(budget, operation, left, right);
}

}  // namespace

void require_defined(const Budget& budget, const Value& value) {
  if (value.is_undefined()) budget.fail("{}", value.reason());
}

Value calculate(Budget& budget, Arithmetic operation, const Value& left, const Value& right) {
  const bool formats = operation == Arithmetic::kModulo && left.text();
  if (formats) budget.fail("formatting with '%' is not supported");
  require_defined(budget, left);
  require_defined(budget, right);
  const auto a = left.number();
  const auto b = right.number();
  if (!a || !b) return calculate_others(budget, operation, left, right);
  const bool divides = operation >= Arithmetic::kDivide && operation <= Arithmetic::kModulo;
  if (divides && *b == 0) budget.fail("division by zero");
  if (left.integer() && right.integer())
    return calculate_integers(budget, operation, *left.integer(), *right.integer());
  return calculate_floats(budget, operation, *a, *b);
}

Value negate(const Budget& budget, const Value& operand) {
  require_defined(budget, operand);
  if (const auto integer = operand.integer()) {
    if (*integer == INT64_MIN) fail_overflow(budget);
    return Value(-*integer);
  }
  if (!operand.number()) budget.fail("unsupported operand for -: '{}'", operand.type());
  return Value(-*operand.number());
}

}  // namespace quern::chat
