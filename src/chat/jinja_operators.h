// Operators on values, as Python defines them. Wrong operands fail.
#pragma once

#include <compare>
#include <cstdint>

#include "chat/jinja_value.h"

namespace quern::chat {

enum class Arithmetic : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Relation : uint8_t { kEqual, kNotEqual, kLess, kGreater, kLessOrEqual, kGreaterOrEqual, kIn, kNotIn };

// Integers have 64 bits; a result beyond is an error, where Python would go on with a larger integer.
Value calculate(Budget& budget, Arithmetic operation, const Value& left, const Value& right);
Value negate(const Budget& budget, const Value& operand);

bool compare(Budget& budget, Relation relation, const Value& left, const Value& right);
bool are_equal(Budget& budget, const Value& left, const Value& right);
bool is_less(Budget& budget, const Value& left, const Value& right);
bool contains(Budget& budget, const Value& container, const Value& item);

// Fails if `value` is undefined, with the reason.
void require_defined(const Budget& budget, const Value& value);

// The items of a list, the keys of a dict, the characters of a text. Uses up an iterator. Fails for other values.
Values items_of(Budget& budget, const Value& value);

// object[start:stop:step]; none for an absent part.
Value slice(Budget& budget, const Value& object, const Value& start, const Value& stop, const Value& step);

}  // namespace quern::chat
