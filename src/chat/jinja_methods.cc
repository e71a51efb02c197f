// Methods of lists and dicts, and which methods are refused.
#include "chat/jinja_methods.h"

#include <algorithm>
#include <string>

#include "chat/jinja_arguments.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_rendering.h"

namespace quern::chat {
namespace {

using MethodName = std::pair<std::string_view, Method>;

Value get(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "get", arguments, {"key", "default"}, 1);
  if (const Value* found = self.dict()->find(rendering, bound[0])) return *found;
  return bound.has(1) ? bound[1] : Value();
}

Value keys(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "keys", arguments, {}, 0);
  return make_sequence(rendering, SequenceKind::kKeys, items_of(rendering, self));
}

Value values(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "values", arguments, {}, 0);
  Values items;
  for (const auto& entry : self.dict()->entries()) items.push_back(entry.second);
  return make_sequence(rendering, SequenceKind::kValues, std::move(items));
}

Value items(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "items", arguments, {}, 0);
  return make_sequence(rendering, SequenceKind::kItems, entries_of(rendering, *self.dict()));
}

Value copy(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "copy", arguments, {}, 0);
  return self;  // which never changes
}

Value count(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "count", arguments, {"item"}, 1);
  const Values& all = self.sequence()->items;
  return Value(
      std::count_if(all.begin(), all.end(), [&](const Value& item) { return are_equal(rendering, item, bound[0]); }));
}

Value index(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "index", arguments, {"item"}, 1);
  const Values& all = self.sequence()->items;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Value& item) { return are_equal(rendering, item, bound[0]); });
  if (found == all.end()) rendering.fail("'index' of an item that is not in the list");
  return Value(found - all.begin());
}

constexpr MethodName kDictMethods[] = {
    {"copy", copy}, {"get", get}, {"items", items}, {"keys", keys}, {"values", values}};
constexpr MethodName kListMethods[] = {{"copy", copy}, {"count", count}, {"index", index}};

// Of Python, without those above. Jinja2's sandbox refuses the ones that change their object.
constexpr std::string_view kOtherDictMethods[] = {"clear", "fromkeys", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kOtherListMethods[] = {"append", "clear",  "extend",  "insert",
                                                  "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kOtherTextMethods[] = {"casefold",   "center",      "encode",   "expandtabs", "format",
                                                  "format_map", "index",       "isalnum",  "isascii",    "isidentifier",
                                                  "isnumeric",  "isprintable", "istitle",  "ljust",      "maketrans",
                                                  "rindex",     "rjust",       "swapcase", "translate",  "zfill"};

template <size_t count>
Method find_in(const MethodName (&table)[count], std::string_view name) {
  for (const auto& [known, method] : table) {
    if (known == name) return method;
  }
  return nullptr;
}

template <size_t count>
void refuse(const Budget& budget, const std::string_view (&names)[count], const Value& self, std::string_view name) {
  if (std::find(std::begin(names), std::end(names), name) == std::end(names)) return;
  budget.fail("the method '{}' of '{}' is not supported", name, self.type());
}

}  // namespace

Values entries_of(Budget& budget, const Dict& dict) {
  Values pairs;
  for (const auto& [key, value] : dict.entries()) {
    pairs.push_back(make_sequence(budget, SequenceKind::kTuple, {key, value}));
  }
  return pairs;
}

Method find_method(const Budget& budget, const Value& self, std::string_view name) {
  if (self.text()) {
    refuse(budget, kOtherTextMethods, self, name);
    return find_text_method(name);
  }
  if (self.dict()) {
    refuse(budget, kOtherDictMethods, self, name);
    return find_in(kDictMethods, name);
  }
  if (!self.sequence() || self.sequence()->kind > SequenceKind::kRange) return nullptr;
  refuse(budget, kOtherListMethods, self, name);
  return find_in(kListMethods, name);
}

}  // namespace quern::chat
