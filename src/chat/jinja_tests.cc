#include "chat/jinja_tests.h"

#include <iterator>
#include <utility>

#include "chat/jinja_arguments.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

// A test of the value alone.
template <bool (*accepts)(const Value&)>
bool plain(Rendering& rendering, const Value& subject, const Arguments& arguments) {
  const BoundArguments bound(rendering, "is", arguments, {}, 0);
  return accepts(subject);
}

// A test of the value and one argument.
template <Relation relation>
bool related(Rendering& rendering, const Value& subject, const Arguments& arguments) {
  const BoundArguments bound(rendering, "is", arguments, {"other"}, 1);
  return compare(rendering, relation, subject, bound[0]);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_not_defined(const Value& value) { return value.is_undefined(); }
bool is_nothing(const Value& value) { return value.is_none(); }
bool is_string(const Value& value) { return value.text() != nullptr; }
bool is_mapping(const Value& value) { return value.dict() != nullptr; }
bool is_number(const Value& value) { return value.number().has_value(); }
bool is_boolean(const Value& value) { return value.is_bool(); }
bool is_integer(const Value& value) { return value.integer() && !value.is_bool(); }
bool is_floating(const Value& value) { return value.is_float(); }
bool is_constant_true(const Value& value) { return value.is_bool() && is_true(value); }
bool is_constant_false(const Value& value) { return value.is_bool() && !is_true(value); }
bool is_function(const Value& value) { return value.callable() != nullptr; }

bool is_iterable(const Value& value) {
  return value.text() || value.sequence() || value.dict() || value.loop() || value.is_undefined();
}

// Has a length and items, as Jinja2 asks: that is also so for a dict.
bool is_sequence(const Value& value) {
  const bool has_items = value.sequence() && value.sequence()->kind <= SequenceKind::kRange;
  return has_items || value.text() || value.dict() || value.is_undefined();
}

template <int64_t rest>
bool has_rest_of_two(Rendering& rendering, const Value& subject, const Arguments& arguments) {
  const BoundArguments bound(rendering, "is", arguments, {}, 0);
  return are_equal(rendering, calculate(rendering, Arithmetic::kModulo, subject, Value(2)), Value(rest));
}

bool is_divisible(Rendering& rendering, const Value& subject, const Arguments& arguments) {
  const BoundArguments bound(rendering, "divisibleby", arguments, {"number"}, 1);
  return are_equal(rendering, calculate(rendering, Arithmetic::kModulo, subject, bound[0]), Value(0));
}

template <bool (*accepts)(std::string_view) noexcept>
bool has_case(Rendering& rendering, const Value& subject, const Arguments& arguments) {
  const BoundArguments bound(rendering, "is", arguments, {}, 0);
  return accepts(to_text(rendering, subject));
}

// Python's `is`, for the constants of which there is one object each.
bool is_same(Rendering& rendering, const Value& subject, const Arguments& arguments) {
  const BoundArguments bound(rendering, "sameas", arguments, {"other"}, 1);
  const Value& other = bound[0];
  if (!other.is_none() && !other.is_bool()) rendering.fail("'sameas' of a '{}' is not supported", other.type());
  if (other.is_none()) return subject.is_none();
  return subject.is_bool() && is_true(subject) == is_true(other);
}

}  // namespace

Test find_test(std::string_view name) {
  constexpr std::pair<std::string_view, Test> kTests[] = {
      {"!=", related<Relation::kNotEqual>},
      {"<", related<Relation::kLess>},
      {"<=", related<Relation::kLessOrEqual>},
      {"==", related<Relation::kEqual>},
      {">", related<Relation::kGreater>},
      {">=", related<Relation::kGreaterOrEqual>},
      {"boolean", plain<is_boolean>},
      {"callable", plain<is_function>},
      {"defined", plain<is_defined>},
      {"divisibleby", is_divisible},
      {"eq", related<Relation::kEqual>},
      {"equalto", related<Relation::kEqual>},
      {"even", has_rest_of_two<0>},
      {"false", plain<is_constant_false>},
      {"float", plain<is_floating>},
      {"ge", related<Relation::kGreaterOrEqual>},
      {"greaterthan", related<Relation::kGreater>},
      {"gt", related<Relation::kGreater>},
      {"in", related<Relation::kIn>},
      {"integer", plain<is_integer>},
      {"iterable", plain<is_iterable>},
      {"le", related<Relation::kLessOrEqual>},
      {"lessthan", related<Relation::kLess>},
      {"lower", has_case<is_lower>},
      {"lt", related<Relation::kLess>},
      {"mapping", plain<is_mapping>},
      {"ne", related<Relation::kNotEqual>},
      {"none", plain<is_nothing>},
      {"number", plain<is_number>},
      {"odd", has_rest_of_two<1>},
      {"sameas", is_same},
      {"sequence", plain<is_sequence>},
      {"string", plain<is_string>},
      {"true", plain<is_constant_true>},
      {"undefined", plain<is_not_defined>},
      {"upper", has_case<is_upper>},
  };
  for (const auto& [known, test] : kTests) {
    if (known == name) return test;
  }
  return nullptr;
}

}  // namespace quern::chat
