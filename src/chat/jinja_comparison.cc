// Equality, order, membership, iteration and slices.
#include <algorithm>
#include <cmath>
#include <string>

#include "chat/jinja_operators.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

// Exact, where converting an integer of more than 53 bits to double would round it.
std::partial_ordering order_numbers(const Value& left, const Value& right) {
  const auto a = left.integer();
  const auto b = right.integer();
  if (a && b) return *a <=> *b;
  return static_cast<long double>(a ? static_cast<long double>(*a) : *left.number()) <=>
         static_cast<long double>(b ? static_cast<long double>(*b) : *right.number());
}

bool are_equal_items(Budget& budget, const Sequence& left, const Sequence& right) {
  if (&left == &right) return true;
  if (left.kind != right.kind || left.kind == SequenceKind::kIterator) return false;
  if (left.items.size() != right.items.size()) return false;
  return std::equal(left.items.begin(), left.items.end(), right.items.begin(),
                    [&](const Value& a, const Value& b) { return are_equal(budget, a, b); });
}

bool are_equal_dicts(Budget& budget, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const auto& entry) {
    const Value* other = right.find(budget, entry.first);
    return other && are_equal(budget, entry.second, *other);
  });
}

bool is_less_items(Budget& budget, const Values& left, const Values& right) {
  const size_t common = std::min(left.size(), right.size());
  for (size_t i = 0; i < common; ++i) {
    if (!are_equal(budget, left[i], right[i])) return is_less(budget, left[i], right[i]);
  }
  return left.size() < right.size();
}

bool contains_item(Budget& budget, const Sequence& sequence, const Value& item) {
  const bool is_iterator = sequence.kind == SequenceKind::kIterator;
  for (size_t i = is_iterator ? sequence.taken : 0; i < sequence.items.size(); ++i) {
    if (is_iterator) sequence.taken = i + 1;
    if (are_equal(budget, sequence.items[i], item)) return true;
  }
  return false;
}

bool contains_text(Budget& budget, const Text& text, const Value& item) {
  if (!item.text()) budget.fail("'in' a text requires a text on its left, not '{}'", item.type());
  budget.read(text.bytes.size() + item.text()->bytes.size());
  return find_text(text.bytes, item.text()->bytes) != std::string::npos;
}

Values characters_of(Budget& budget, const Text& text) {
  budget.allocate(text.characters * (sizeof(Value) + sizeof(Text)));
  Values characters;
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t length = offset_of(std::string_view(text.bytes).substr(at), 1);
    characters.emplace_back(text.bytes.substr(at, length));
    at += length;
  }
  return characters;
}

std::optional<int64_t> slice_part(const Budget& budget, const Value& part) {
  if (part.is_none()) return std::nullopt;
  require_defined(budget, part);
  if (!part.integer()) budget.fail("a part of a slice is of type '{}', not an integer", part.type());
  return part.integer();
}

// The chosen positions, as Python's slice.indices(): negative ones count from the end, and all are clamped.
std::vector<size_t> slice_positions(Budget& budget, int64_t size, const Value& start, const Value& stop,
                                    const Value& step) {
  budget.allocate(static_cast<size_t>(size) * sizeof(size_t));
  const int64_t by = slice_part(budget, step).value_or(1);
  if (by == 0) budget.fail("the step of a slice is zero");
  const int64_t low = by > 0 ? 0 : -1;
  const int64_t high = by > 0 ? size : size - 1;
  const auto clamp = [&](int64_t position) { return std::clamp(position < 0 ? position + size : position, low, high); };
  const auto first = slice_part(budget, start);
  const auto last = slice_part(budget, stop);
  int64_t at = first ? clamp(*first) : by > 0 ? low : high;
  const int64_t end = last ? clamp(*last) : by > 0 ? high : low;
  std::vector<size_t> positions;
  while (by > 0 ? at < end : at > end) {
    positions.push_back(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return positions;
}

// Characters start at these offsets; the last one is the size.
std::vector<size_t> character_offsets(Budget& budget, const Text& text) {
  budget.allocate(text.characters * sizeof(size_t));
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.bytes.size(); ++i) {
    if ((text.bytes[i] & 0xC0) != 0x80) offsets.push_back(i);
  }
  offsets.push_back(text.bytes.size());
  return offsets;
}

Value slice_text(Budget& budget, const Text& text, const std::vector<size_t>& positions) {
  const std::vector<size_t> offsets = character_offsets(budget, text);
  std::string result;
  for (const size_t at : positions) result.append(text.bytes, offsets[at], offsets[at + 1] - offsets[at]);
  return make_text(budget, std::move(result));
}

}  // namespace

bool are_equal(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  if (left.number() && right.number()) return order_numbers(left, right) == 0;
  if (left.text() && right.text()) {
    budget.read(std::min(left.text()->bytes.size(), right.text()->bytes.size()));
    return left.text()->bytes == right.text()->bytes;
  }
  if (left.sequence() && right.sequence()) return are_equal_items(budget, *left.sequence(), *right.sequence());
  if (left.dict() && right.dict()) return are_equal_dicts(budget, *left.dict(), *right.dict());
  if (left.names() || left.loop() || left.callable()) {
    return left.names() == right.names() && left.loop() == right.loop() && left.callable() == right.callable();
  }
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

bool is_less(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  require_defined(budget, left);
  require_defined(budget, right);
  if (left.number() && right.number()) return order_numbers(left, right) < 0;
  if (left.text() && right.text()) {
    budget.read(std::min(left.text()->bytes.size(), right.text()->bytes.size()));
    return left.text()->bytes < right.text()->bytes;  // bytes of UTF-8 have the order of the characters
  }
  const auto has_order = [](const Value& value) {
    return value.sequence() && value.sequence()->kind <= SequenceKind::kTuple;
  };
  const bool comparable = has_order(left) && has_order(right) && left.sequence()->kind == right.sequence()->kind;
  if (!comparable) budget.fail("values of type '{}' and '{}' have no order", left.type(), right.type());
  return is_less_items(budget, left.sequence()->items, right.sequence()->items);
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  budget.step();
  if (container.is_undefined()) return false;
  if (const Text* text = container.text()) return contains_text(budget, *text, item);
  if (const Sequence* sequence = container.sequence()) return contains_item(budget, *sequence, item);
  if (!container.dict()) budget.fail("a value of type '{}' cannot be searched with 'in'", container.type());
  return !item.is_undefined() && container.dict()->find(budget, item) != nullptr;
}

bool compare(Budget& budget, Relation relation, const Value& left, const Value& right) {
  switch (relation) {
    case Relation::kEqual:
      return are_equal(budget, left, right);
    case Relation::kNotEqual:
      return !are_equal(budget, left, right);
    case Relation::kLess:
      return is_less(budget, left, right);
    case Relation::kGreater:
      return is_less(budget, right, left);
    case Relation::kLessOrEqual:
      return is_less(budget, left, right) || are_equal(budget, left, right);
    case Relation::kGreaterOrEqual:
      return is_less(budget, right, left) || are_equal(budget, left, right);
    case Relation::kIn:
      return contains(budget, right, left);
    case Relation::kNotIn:
      break;
  }
  return !contains(budget, right, left);
}

Values items_of(Budget& budget, const Value& value) {
  if (value.is_undefined()) return {};
  if (const Text* text = value.text()) return characters_of(budget, *text);
  if (const Sequence* sequence = value.sequence()) {
    budget.allocate(sequence->items.size() * sizeof(Value));
    if (sequence->kind != SequenceKind::kIterator) return sequence->items;
    const size_t taken = std::exchange(sequence->taken, sequence->items.size());
    return {sequence->items.begin() + static_cast<ptrdiff_t>(taken), sequence->items.end()};
  }
  if (!value.dict()) budget.fail("a value of type '{}' cannot be iterated", value.type());
  budget.allocate(value.dict()->entries().size() * sizeof(Value));
  Values keys;
  for (const auto& [key, item] : value.dict()->entries()) keys.push_back(key);
  return keys;
}

Value slice(Budget& budget, const Value& object, const Value& start, const Value& stop, const Value& step) {
  require_defined(budget, object);
  if (const Text* text = object.text()) {
    return slice_text(budget, *text,
                      slice_positions(budget, static_cast<int64_t>(text->characters), start, stop, step));
  }
  const Sequence* sequence = object.sequence();
  if (!sequence || sequence->kind > SequenceKind::kRange) {
    budget.fail("a value of type '{}' has no slices", object.type());
  }
  Values items;
  for (const size_t at : slice_positions(budget, static_cast<int64_t>(sequence->items.size()), start, stop, step)) {
    items.push_back(sequence->items[at]);
  }
  return make_sequence(budget, sequence->kind, std::move(items));
}

}  // namespace quern::chat
