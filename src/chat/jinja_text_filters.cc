// Filters that give a text.
#include <algorithm>
#include <string>
#include <utility>

#include "chat/jinja_arguments.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_methods.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

Value trim(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "trim", arguments, {"chars"}, 0);
  const std::string text = to_text(rendering, input);
  if (!bound.is_given(0)) return make_text(rendering, std::string(strip(text, Side::kBoth)));
  const std::string characters = bound.text(0);
  rendering.read(characters.size() * 16);
  return make_text(rendering, std::string(strip(text, Side::kBoth, characters)));
}

template <std::string (*change)(std::string_view)>
Value change_case(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "case", arguments, {}, 0);
  return make_text(rendering, change(to_text(rendering, input)));
}

// Words end at white space, and at some punctuation: unlike the method, it leaves "it's" one word.
std::string title_words(std::string_view text) {
  std::string result;
  bool in_word = false;
  while (!text.empty()) {
    const size_t length = offset_of(text, 1);
    const std::string_view character = text.substr(0, length);
    result += in_word ? lower(character) : upper(character);
    in_word = leading_space(character) == 0 && std::string_view("-({[<").find(character) == std::string_view::npos;
    text.remove_prefix(length);
  }
  return result;
}

Value replace(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "replace", arguments, {"old", "new", "count"}, 2);
  const int64_t most = bound.is_given(2) ? bound.integer(2, -1) : -1;
  return replace_text(rendering, to_text(rendering, input), to_text(rendering, bound[0]), to_text(rendering, bound[1]),
                      most < 0 ? kNoLimit : static_cast<size_t>(most));
}

// A text, or this many spaces, which are limited: nothing useful is indented by more.
std::string indentation(const Budget& budget, const BoundArguments& bound, size_t i, int64_t otherwise) {
  if (bound.has(i) && bound[i].text()) return bound.text(i);
  constexpr int64_t kMaxSpaces = 1000;
  const int64_t spaces = bound.integer(i, otherwise);
  if (spaces > kMaxSpaces) budget.fail("an indentation of {} spaces; at most {} are accepted", spaces, kMaxSpaces);
  return std::string(static_cast<size_t>(std::max<int64_t>(spaces, 0)), ' ');
}

Value indent(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "indent", arguments, {"width", "first", "blank"}, 0);
  const std::string space = indentation(rendering, bound, 0, 4);
  require_defined(rendering, input);
  if (!input.text()) rendering.fail("'indent' of a '{}', not of a text", input.type());
  const std::string text = to_text(rendering, input) + "\n";  // so that a line end at the end gives an empty line
  rendering.allocate(text.size() * sizeof(std::string_view));
  const std::vector<std::string_view> lines = split_lines(text);
  std::string result = bound.flag(1, false) ? space : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    rendering.allocate(space.size() + lines[i].size());
    if (i > 0) result += '\n';
    if (i > 0 && (bound.flag(2, false) || !lines[i].empty())) result += space;
    result += lines[i];
  }
  return make_text(rendering, std::move(result));
}

Value string(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "string", arguments, {}, 0);
  return input.text() ? input : make_text(rendering, to_text(rendering, input));
}

Value mark_safe(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "safe", arguments, {}, 0);
  return make_markup(rendering, to_text(rendering, input));
}

Value escape(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "escape", arguments, {}, 0);
  if (input.text() && input.text()->is_markup) return input;
  return make_markup(rendering, escape_html(to_text(rendering, input)));
}

void set_separators(const Budget& budget, const Value& value, JsonStyle& style) {
  const Sequence* pair = value.sequence();
  const bool is_pair = pair && pair->items.size() == 2 && pair->items[0].text() && pair->items[1].text();
  if (!is_pair) budget.fail("'separators' of 'tojson' must be two texts");
  style.item_separator = pair->items[0].text()->bytes;
  style.key_separator = pair->items[1].text()->bytes;
}

Value tojson(Rendering& rendering, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(rendering, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ascii_only = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  style.is_indented = bound.is_given(1);
  if (style.is_indented) style.indent = indentation(rendering, bound, 1, 0);
  if (style.is_indented) style.item_separator = ",";
  if (bound.is_given(2)) set_separators(rendering, bound[2], style);
  return make_text(rendering, to_json(rendering, input, style));
}

}  // namespace

Filter find_text_filter(std::string_view name) {
  constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"capitalize", change_case<capitalize>}, {"e", escape},        {"escape", escape},  {"indent", indent},
      {"lower", change_case<lower>},           {"replace", replace}, {"safe", mark_safe}, {"string", string},
      {"title", change_case<title_words>},     {"tojson", tojson},   {"trim", trim},      {"upper", change_case<upper>},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace quern::chat
