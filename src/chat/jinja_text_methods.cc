// Methods of texts.
#include <algorithm>
#include <string>

#include "chat/jinja_arguments.h"
#include "chat/jinja_methods.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

const std::string& text_of(const Value& self) { return self.text()->bytes; }

void expect_no_arguments(Rendering& rendering, std::string_view name, const Arguments& arguments) {
  const BoundArguments bound(rendering, name, arguments, {}, 0);
}

template <Side side>
Value strip_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "strip", arguments, {"characters"}, 0);
  if (!bound.is_given(0)) return make_text(rendering, std::string(strip(text_of(self), side)));
  const std::string characters = bound.text(0);
  rendering.read(characters.size() * 16);
  return make_text(rendering, std::string(strip(text_of(self), side, characters)));
}

template <std::string (*change)(std::string_view)>
Value change_case(Rendering& rendering, const Value& self, const Arguments& arguments) {
  expect_no_arguments(rendering, "case", arguments);
  rendering.allocate(text_of(self).size());
  return make_text(rendering, change(text_of(self)));
}

template <bool (*accepts)(std::string_view) noexcept>
Value is_all(Rendering& rendering, const Value& self, const Arguments& arguments) {
  expect_no_arguments(rendering, "is", arguments);
  rendering.allocate(text_of(self).size());
  return Value(accepts(text_of(self)));
}

bool is_all_space(std::string_view text) noexcept { return !text.empty() && leading_space(text) == text.size(); }

bool has_affix(std::string_view text, std::string_view affix, bool is_prefix) {
  return is_prefix ? text.starts_with(affix) : text.ends_with(affix);
}

// The argument is a text or a tuple of texts.
template <bool is_prefix>
Value affix_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, is_prefix ? "startswith" : "endswith", arguments, {"affix"}, 1);
  const Sequence* options = bound[0].sequence();
  if (!options || options->kind != SequenceKind::kTuple) {
    return Value(has_affix(text_of(self), bound.text(0), is_prefix));
  }
  for (const Value& option : options->items) {
    rendering.step();
    if (!option.text()) rendering.fail("expected a tuple of texts, found a '{}' in it", option.type());
    if (has_affix(text_of(self), text_of(option), is_prefix)) return Value(true);
  }
  return Value(false);
}

template <bool is_prefix>
Value remove_affix(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const std::string affix = BoundArguments(rendering, "remove", arguments, {"affix"}, 1).text(0);
  if (affix.empty() || !has_affix(text_of(self), affix, is_prefix)) return self;
  const size_t rest = text_of(self).size() - affix.size();
  return make_text(rendering, text_of(self).substr(is_prefix ? affix.size() : 0, rest));
}

Value make_parts(Rendering& rendering, const std::vector<std::string_view>& parts) {
  Values values;
  values.reserve(parts.size());
  for (const std::string_view part : parts) values.push_back(make_text(rendering, std::string(part)));
  return make_list(rendering, std::move(values));
}

std::string separator_of(const Budget& budget, const BoundArguments& bound) {
  std::string separator = bound.text(0);
  if (separator.empty()) budget.fail("the separator is empty");
  return separator;
}

template <bool from_right>
Value split_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "split", arguments, {"sep", "maxsplit"}, 0);
  const int64_t most = bound.integer(1, -1);
  const size_t limit = most < 0 ? kNoLimit : static_cast<size_t>(most);
  const std::string& text = text_of(self);
  if (!bound.is_given(0)) {
    if (from_right && limit != kNoLimit) rendering.fail("'rsplit' by white space with a limit is not supported");
    rendering.allocate(text.size() / 2 * sizeof(std::string_view));  // no text has more words
    return make_parts(rendering, split_spaces(text, limit));
  }
  const std::string separator = separator_of(rendering, bound);
  rendering.read(text.size());
  rendering.allocate(std::min(count_text(text, separator), limit) * sizeof(std::string_view) + separator.size() * 8);
  if (!from_right) return make_parts(rendering, split(text, separator, limit));
  rendering.allocate(text.size());
  return make_parts(rendering, split_right(text, separator, limit));
}

Value split_lines_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  expect_no_arguments(rendering, "splitlines", arguments);
  rendering.allocate(text_of(self).size() * sizeof(std::string_view));  // no text has more lines
  return make_parts(rendering, split_lines(text_of(self)));
}

template <bool from_right>
Value partition(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "partition", arguments, {"sep"}, 1);
  const std::string separator = separator_of(rendering, bound);
  const std::string& text = text_of(self);
  rendering.allocate((text.size() + separator.size()) * 8);
  const size_t at = from_right ? find_last_text(text, separator) : find_text(text, separator);
  Values parts;
  if (at == std::string::npos) {
    parts = from_right ? Values{Value(""), Value(""), self} : Values{self, Value(""), Value("")};
  } else {
    parts = {Value(text.substr(0, at)), Value(separator), Value(text.substr(at + separator.size()))};
  }
  return make_sequence(rendering, SequenceKind::kTuple, std::move(parts));
}

Value replace_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "replace", arguments, {"old", "new", "count"}, 2);
  const int64_t most = bound.integer(2, -1);
  return replace_text(rendering, text_of(self), bound.text(0), bound.text(1),
                      most < 0 ? kNoLimit : static_cast<size_t>(most));
}

// The number of the character at which the argument starts, or -1. The search may start at a later character.
template <bool from_right>
Value find_method_of_text(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "find", arguments, {"sub", "start"}, 1);
  const std::string needle = bound.text(0);
  const int64_t start = bound.integer(1, 0);
  if (start < 0) rendering.fail("'find' from a position that counts from the end is not supported");
  const std::string_view text = text_of(self);
  rendering.allocate(text.size() + needle.size() * 8);
  if (static_cast<size_t>(start) > self.text()->characters) return Value(-1);
  const size_t skipped = offset_of(text, static_cast<size_t>(start));
  const std::string_view rest = text.substr(skipped);
  const size_t at = from_right ? find_last_text(rest, needle) : find_text(rest, needle);
  return at == std::string::npos ? Value(-1) : Value(characters_in(text.substr(0, skipped + at)));
}

Value count_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const std::string needle = BoundArguments(rendering, "count", arguments, {"sub"}, 1).text(0);
  rendering.read(text_of(self).size());
  rendering.allocate(needle.size() * 8);
  return Value(needle.empty() ? self.text()->characters + 1 : count_text(text_of(self), needle));
}

Value join_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(rendering, "join", arguments, {"items"}, 1);
  std::string result;
  bool first = true;
  for (const Value& item : items_of(rendering, bound[0])) {
    if (!item.text()) rendering.fail("'join' of a text expects texts, found a '{}'", item.type());
    rendering.allocate(text_of(self).size() + text_of(item).size());
    if (!std::exchange(first, false)) result += text_of(self);
    result += text_of(item);
  }
  return make_text(rendering, std::move(result));
}

// old is empty: between all characters, and at both ends.
std::string replace_nothing(std::string_view text, std::string_view replacement, size_t count) {
  std::string result;
  for (; count > 0; --count) {
    result += replacement;
    const size_t next = offset_of(text, 1);
    result += text.substr(0, next);
    text.remove_prefix(next);
  }
  return result += text;
}

}  // namespace

Value replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view replacement,
                   size_t limit) {
  budget.read(text.size());
  const size_t found = old.empty() ? characters_in(text) + 1 : count_text(text, old);
  const size_t count = std::min(found, limit);
  size_t added = 0;
  if (__builtin_mul_overflow(count, replacement.size() + sizeof(std::string_view), &added)) added = kMaxComputedBytes;
  budget.allocate(text.size() + old.size() * 8);
  budget.allocate(added);
  if (old.empty()) return make_text(budget, replace_nothing(text, replacement, count));
  std::string result;
  const std::vector<std::string_view> parts = split(text, old, count);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += replacement;
    result += parts[i];
  }
  return make_text(budget, std::move(result));
}

Method find_text_method(std::string_view name) {
  constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"capitalize", change_case<capitalize>},
      {"count", count_method},
      {"endswith", affix_method<false>},
      {"find", find_method_of_text<false>},
      {"isalpha", is_all<is_alphabetic>},
      {"isdecimal", is_all<is_decimal>},
      {"isdigit", is_all<is_decimal>},
      {"islower", is_all<is_lower>},
      {"isspace", is_all<is_all_space>},
      {"isupper", is_all<is_upper>},
      {"join", join_method},
      {"lower", change_case<lower>},
      {"lstrip", strip_method<Side::kLeft>},
      {"partition", partition<false>},
      {"removeprefix", remove_affix<true>},
      {"removesuffix", remove_affix<false>},
      {"replace", replace_method},
      {"rfind", find_method_of_text<true>},
      {"rpartition", partition<true>},
      {"rsplit", split_method<true>},
      {"rstrip", strip_method<Side::kRight>},
      {"split", split_method<false>},
      {"splitlines", split_lines_method},
      {"startswith", affix_method<true>},
      {"strip", strip_method<Side::kBoth>},
      {"title", change_case<title>},
      {"upper", change_case<upper>},
  };
  for (const auto& [known, method] : kMethods) {
    if (known == name) return method;
  }
  return nullptr;
}

}  // namespace quern::chat
