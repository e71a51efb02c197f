// Filters of lists, dicts and other values with items; and `default`.
#include <algorithm>
#include <string>
#include <utility>

#include "chat/jinja_arguments.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_methods.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_selection.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

Value use_default(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "default", arguments, {"default_value", "boolean"}, 0);
  const bool is_absent = input.is_undefined() || (bound.flag(1, false) && !is_true(input));
  if (!is_absent) return input;
  return bound.has(0) ? bound[0] : Value("");
}

Value first(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "first", arguments, {}, 0);
  const Sequence* sequence = input.sequence();
  if (sequence && sequence->kind == SequenceKind::kIterator && sequence->taken < sequence->items.size()) {
    return sequence->items[sequence->taken++];
  }
  const Values items = items_of(rendering, input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

void require_reversible(const Budget& budget, const Value& value) {
  const bool is_iterator = value.sequence() && value.sequence()->kind == SequenceKind::kIterator;
  if (is_iterator) budget.fail("an iterator has no end to start from; the filter 'list' makes a list of it");
}

Value last(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "last", arguments, {}, 0);
  require_reversible(rendering, input);
  const Values items = items_of(rendering, input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "reverse", arguments, {}, 0);
  if (input.text()) return slice(rendering, input, Value(), Value(), Value(-1));
  Values items = items_of(rendering, input);
  std::reverse(items.begin(), items.end());
  return make_iterator(rendering, std::move(items));
}

Value list(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "list", arguments, {}, 0);
  return make_list(rendering, items_of(rendering, input));
}

Value dict_items(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "items", arguments, {}, 0);
  if (input.is_undefined()) return make_iterator(rendering, {});
  if (!input.dict()) rendering.fail("'items' of a '{}', not of a dict", input.type());
  return make_iterator(rendering, entries_of(rendering, *input.dict()));
}

Value join(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "join", arguments, {"d", "attribute"}, 0);
  const std::string separator = bound.has(0) ? to_text(rendering, bound[0]) : "";
  std::string result;
  bool is_first = true;
  for (const Value& item : items_of(rendering, input)) {
    rendering.allocate(separator.size());
    if (!std::exchange(is_first, false)) result += separator;
    result += to_text(rendering, bound.is_given(1) ? select_attribute(rendering, item, bound[1]) : item);
  }
  return make_text(rendering, std::move(result));
}

// What items are compared by: an attribute, in lower case unless case matters.
class SortKey {
 public:
  SortKey(Rendering& rendering, const Value* attribute, bool case_sensitive)
      : rendering_(rendering), attribute_(attribute), case_sensitive_(case_sensitive) {}

  Value of(const Value& item) const {
    const Value key = attribute_ ? select_attribute(rendering_, item, *attribute_) : item;
    if (case_sensitive_ || !key.text()) return key;
    return make_text(rendering_, lower(key.text()->bytes));
  }

 private:
  Rendering& rendering_;
  const Value* attribute_;
  bool case_sensitive_;
};

// Equal values need no order, as in Python, where the keys are compared as lists. stable_sort() and not sort(): a NaN
// has no order, with which sort() may read beyond the ends.
Values sorted(Rendering& rendering, const Values& items, const SortKey& key, bool reverse) {
  rendering.allocate(items.size() * 2 * sizeof(Value));
  std::vector<std::pair<Value, const Value*>> keyed;
  for (const Value& item : items) keyed.emplace_back(key.of(item), &item);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    if (are_equal(rendering, a.first, b.first)) return false;
    return reverse ? is_less(rendering, b.first, a.first) : is_less(rendering, a.first, b.first);
  });
  Values result;
  for (const auto& entry : keyed) result.push_back(*entry.second);
  return result;
}

Value sort(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  const SortKey key(rendering, bound.is_given(2) ? &bound[2] : nullptr, bound.flag(1, false));
  return make_list(rendering, sorted(rendering, items_of(rendering, input), key, bound.flag(0, false)));
}

Value dictsort(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  if (!input.dict()) rendering.fail("'dictsort' of a '{}', not of a dict", input.type());
  const std::string by = bound.text(1, "key");
  if (by != "key" && by != "value") rendering.fail("'dictsort' is by 'key' or by 'value', not by {}", in_quotes(by));
  const Value position(by == "key" ? 0 : 1);
  const SortKey key(rendering, &position, bound.flag(0, false));
  return make_list(rendering, sorted(rendering, entries_of(rendering, *input.dict()), key, bound.flag(2, false)));
}

Value unique(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "unique", arguments, {"case_sensitive", "attribute"}, 0);
  const SortKey key(rendering, bound.is_given(1) ? &bound[1] : nullptr, bound.flag(0, false));
  Dict seen;
  Values result;
  for (Value& item : items_of(rendering, input)) {
    const Value found = key.of(item);
    if (seen.find(rendering, found)) continue;
    rendering.allocate(sizeof(Value) * 8);
    seen.set(rendering, found, Value());
    result.push_back(std::move(item));
  }
  return make_iterator(rendering, std::move(result));
}

template <bool is_max>
Value extreme(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, is_max ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0);
  const SortKey key(rendering, bound.is_given(1) ? &bound[1] : nullptr, bound.flag(0, false));
  const Values items = items_of(rendering, input);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    const Value a = key.of(items[best]);
    const Value b = key.of(items[i]);
    if (is_max ? is_less(rendering, a, b) : is_less(rendering, b, a)) best = i;
  }
  return items[best];
}

Value sum(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "sum", arguments, {"attribute", "start"}, 0);
  Value total = bound.has(1) ? bound[1] : Value(0);
  for (const Value& item : items_of(rendering, input)) {
    const Value term = bound.is_given(0) ? select_attribute(rendering, item, bound[0]) : item;
    total = calculate(rendering, Arithmetic::kAdd, total, term);
  }
  return total;
}

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"d", use_default},     {"default", use_default}, {"dictsort", dictsort}, {"first", first},
      {"items", dict_items},  {"join", join},           {"last", last},         {"list", list},
      {"max", extreme<true>}, {"min", extreme<false>},  {"reverse", reverse},   {"sort", sort},
      {"sum", sum},           {"unique", unique}};
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace quern::chat
