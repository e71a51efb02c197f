// Evaluation of expressions.
#include "chat/jinja_ast.h"
#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"

namespace quern::chat {

Value Expression::value(Rendering& rendering) const {
  const Rendering::Level level(rendering);
  rendering.at_line(line);
  return evaluate(rendering);
}

Arguments ArgumentList::evaluate(Rendering& rendering) const {
  Arguments arguments;
  arguments.positional.reserve(positional.size());
  for (const ExpressionPtr& one : positional) arguments.positional.push_back(one->value(rendering));
  for (const auto& [name, one] : keywords) arguments.keywords.emplace_back(name, one->value(rendering));
  return arguments;
}

Value Name::evaluate(Rendering& rendering) const { return rendering.find(name); }

Value ListLiteral::evaluate(Rendering& rendering) const {
  Values values;
  values.reserve(items.size());
  for (const ExpressionPtr& item : items) values.push_back(item->value(rendering));
  return make_sequence(rendering, kind, std::move(values));
}

Value DictLiteral::evaluate(Rendering& rendering) const {
  Dict dict;
  for (size_t i = 0; i < keys.size(); ++i) {
    Value key = keys[i]->value(rendering);
    dict.set(rendering, std::move(key), values[i]->value(rendering));
  }
  return make_dict(rendering, std::move(dict));
}

Value Attribute::evaluate(Rendering& rendering) const {
  const Value of = object->value(rendering);
  rendering.at_line(line);
  return attribute_of(rendering, of, name);
}

Value Subscript::evaluate(Rendering& rendering) const {
  const Value of = object->value(rendering);
  const Value at = key->value(rendering);
  rendering.at_line(line);
  return item_of(rendering, of, at);
}

Value Slice::evaluate(Rendering& rendering) const {
  const Value of = object->value(rendering);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) bounds[i] = parts[i] ? parts[i]->value(rendering) : Value();
  rendering.at_line(line);
  return slice(rendering, of, bounds[0], bounds[1], bounds[2]);
}

Value Call::evaluate(Rendering& rendering) const {
  const Value function = callee->value(rendering);
  const Arguments given = arguments.evaluate(rendering);
  rendering.at_line(line);
  require_defined(rendering, function);
  if (!function.callable()) rendering.fail("a value of type '{}' cannot be called", function.type());
  return function.callable()->call(rendering, given);
}

Value FilterCall::evaluate(Rendering& rendering) const { return apply(rendering, input->value(rendering)); }

Value FilterCall::apply(Rendering& rendering, const Value& to) const {
  const Arguments given = arguments.evaluate(rendering);
  rendering.at_line(line);
  return filter(rendering, to, given);
}

Value TestCall::evaluate(Rendering& rendering) const {
  const Value tested = subject->value(rendering);
  const Arguments given = arguments.evaluate(rendering);
  rendering.at_line(line);
  return Value(test(rendering, tested, given));
}

Value Unary::evaluate(Rendering& rendering) const {
  const Value of = operand->value(rendering);
  rendering.at_line(line);
  if (kind == Kind::kNot) return Value(!is_true(of));
  const Value negative = negate(rendering, of);
  if (kind == Kind::kMinus) return negative;
  return of.is_bool() ? Value(*of.integer()) : of;
}

Value Binary::evaluate(Rendering& rendering) const {
  const Value a = left->value(rendering);
  const Value b = right->value(rendering);
  rendering.at_line(line);
  return calculate(rendering, operation, a, b);
}

Value Concatenation::evaluate(Rendering& rendering) const {
  std::string text;
  for (const ExpressionPtr& part : parts) text += to_text(rendering, part->value(rendering));
  return make_text(rendering, std::move(text));
}

Value Comparison::evaluate(Rendering& rendering) const {
  Value left = first->value(rendering);
  for (size_t i = 0; i < rest.size(); ++i) {
    Value right = rest[i]->value(rendering);
    rendering.at_line(line);
    if (!compare(rendering, relations[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Logical::evaluate(Rendering& rendering) const {
  Value result;
  for (const ExpressionPtr& operand : operands) {
    result = operand->value(rendering);
    if (is_true(result) != is_and) break;
  }
  return result;
}

Value Conditional::evaluate(Rendering& rendering) const {
  if (is_true(condition->value(rendering))) return then->value(rendering);
  if (otherwise) return otherwise->value(rendering);
  return Value::undefined("the condition of an expression without 'else' is false");
}

}  // namespace quern::chat
