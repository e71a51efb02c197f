// Filters that apply an attribute, a filter or a test to every item: map, select, reject, selectattr, rejectattr.
#include "chat/jinja_selection.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "chat/jinja_arguments.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_tests.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

Value part_key(std::string_view part) {
  int64_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = error == std::errc() && end == part.data() + part.size() && index >= 0 && part[0] != '-';
  return is_index ? Value(index) : Value(part);
}

// The arguments behind the first `count`.
Arguments without_first(const Arguments& arguments, size_t count) {
  const auto from = arguments.positional.begin() + static_cast<ptrdiff_t>(std::min(count, arguments.positional.size()));
  return {Values(from, arguments.positional.end()), arguments.keywords};
}

std::string name_argument(const Budget& budget, const Arguments& arguments, size_t i, std::string_view what) {
  const Text* name = i < arguments.positional.size() ? arguments.positional[i].text() : nullptr;
  if (!name) budget.fail("expected the name of {}", what);
  return name->bytes;
}

// Jinja2 gives no items for every value that counts as false, such as none.
Values items_if_any(Rendering& rendering, const Value& input) {
  return is_true(input) ? items_of(rendering, input) : Values();
}

Value map_attribute(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "map", arguments, {"attribute", "default"}, 1);
  Values result;
  for (const Value& item : items_if_any(rendering, input)) {
    const Value found = select_attribute(rendering, item, bound[0]);
    result.push_back(found.is_undefined() && bound.is_given(1) ? bound[1] : found);
  }
  return make_iterator(rendering, std::move(result));
}

Value map(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const bool by_attribute = arguments.positional.empty() && !arguments.keywords.empty();
  if (by_attribute) return map_attribute(rendering, input, arguments);
  const std::string name = name_argument(rendering, arguments, 0, "a filter");
  const Filter filter = find_filter(name);
  if (!filter) rendering.fail("the filter {} is not supported", in_quotes(name));
  const Arguments rest = without_first(arguments, 1);
  Values result;
  for (const Value& item : items_if_any(rendering, input)) {
    const Rendering::Level level(rendering);
    result.push_back(filter(rendering, item, rest));
  }
  return make_iterator(rendering, std::move(result));
}

template <bool by_attribute, bool keeps>
Value select(Rendering& rendering, const Value& input, const Arguments& arguments) {
  constexpr size_t kTestAt = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty()) rendering.fail("expected the name of an attribute");
  const bool has_test = arguments.positional.size() > kTestAt;
  const std::string name = has_test ? name_argument(rendering, arguments, kTestAt, "a test") : "";
  const Test test = has_test ? find_test(name) : nullptr;
  if (has_test && !test) rendering.fail("the test {} is not supported", in_quotes(name));
  const Arguments rest = without_first(arguments, kTestAt + 1);
  Values result;
  for (const Value& item : items_if_any(rendering, input)) {
    const Rendering::Level level(rendering);
    const Value subject = by_attribute ? select_attribute(rendering, item, arguments.positional[0]) : item;
    if ((test ? test(rendering, subject, rest) : is_true(subject)) == keeps) result.push_back(item);
  }
  return make_iterator(rendering, std::move(result));
}

}  // namespace

Value select_attribute(Rendering& rendering, const Value& item, const Value& attribute) {
  if (attribute.integer()) return item_of(rendering, item, attribute);
  if (!attribute.text()) rendering.fail("an attribute is a text or an integer, not a '{}'", attribute.type());
  rendering.read(attribute.text()->bytes.size() * 8);
  Value value = item;
  for (const std::string_view part : split(attribute.text()->bytes, ".")) {
    value = item_of(rendering, value, part_key(part));
  }
  return value;
}

Filter find_selection_filter(std::string_view name) {
  constexpr std::pair<std::string_view, Filter> kFilters[] = {{"map", map},
                                                              {"reject", select<false, false>},
                                                              {"rejectattr", select<true, false>},
                                                              {"select", select<false, true>},
                                                              {"selectattr", select<true, true>}};
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

Filter find_filter(std::string_view name) {
  if (const Filter found = find_text_filter(name)) return found;
  if (const Filter found = find_number_filter(name)) return found;
  if (const Filter found = find_sequence_filter(name)) return found;
  return find_selection_filter(name);
}

}  // namespace quern::chat
