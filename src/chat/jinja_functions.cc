// The functions that every template can call.
#include <array>
#include <ctime>

#include "chat/jinja_arguments.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"

namespace quern::chat {
namespace {

Value raise_exception(Rendering& rendering, const Arguments& arguments) {
  const BoundArguments bound(rendering, "raise_exception", arguments, {"message"}, 1);
  rendering.fail("{}", to_text(rendering, bound[0]));
}

// The time of the rendering. Months and weekdays are in English, because the program sets no locale.
Value strftime_now(Rendering& rendering, const Arguments& arguments) {
  const std::string format = BoundArguments(rendering, "strftime_now", arguments, {"format"}, 1).text(0);
  constexpr size_t kMaxFormat = 256;
  if (format.size() > kMaxFormat) rendering.fail("a date format of {} bytes", format.size());
  const std::tm now = rendering.now();
  std::array<char, 8192> buffer{};
  const size_t length = std::strftime(buffer.data(), buffer.size(), format.c_str(), &now);
  std::string text(buffer.data(), length);
  if (!is_utf8(text)) rendering.fail("a date that is not UTF-8");
  return make_text(rendering, std::move(text));
}

std::string range_text(int64_t start, int64_t stop, int64_t step) {
  return step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
}

Value range(Rendering& rendering, const Arguments& arguments) {
  const BoundArguments bound(rendering, "range", arguments, {"start", "stop", "step"}, 1);
  const bool has_start = bound.has(1);
  const int64_t start = has_start ? bound.integer(0, 0) : 0;
  const int64_t stop = bound.integer(has_start ? 1 : 0, 0);
  const int64_t step = bound.integer(2, 1);
  if (step == 0) rendering.fail("the step of a range is zero");
  Values items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (items.size() == kMaxRange) rendering.fail("a range of more than {} numbers", kMaxRange);
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  rendering.allocate(sizeof(Sequence) + items.size() * sizeof(Value));
  return Value(std::make_shared<const Sequence>(
      Sequence{SequenceKind::kRange, std::move(items), 1, range_text(start, stop, step)}));
}

// The entries of a dict, if one is given, and the arguments with names.
Dict named_arguments(Rendering& rendering, std::string_view callee, const Arguments& arguments) {
  if (arguments.positional.size() > 1) rendering.fail("'{}' takes at most one argument without a name", callee);
  Dict dict;
  if (!arguments.positional.empty()) {
    const Dict* given = arguments.positional[0].dict();
    if (!given) rendering.fail("'{}' is given a '{}', not a dict", callee, arguments.positional[0].type());
    dict = *given;
  }
  for (const auto& [name, value] : arguments.keywords) dict.set(rendering, Value(name), value);
  return dict;
}

Value make_names(Rendering& rendering, const Arguments& arguments) {
  return rendering.make_namespace(named_arguments(rendering, "namespace", arguments));
}

Value make_dict_of(Rendering& rendering, const Arguments& arguments) {
  return make_dict(rendering, named_arguments(rendering, "dict", arguments));
}

Value function(Value (*call)(Rendering&, const Arguments&)) {
  return Value(std::make_shared<const Callable>(Callable{call}));
}

}  // namespace

Value find_function(const Budget& budget, std::string_view name) {
  if (name == "raise_exception") return function(raise_exception);
  if (name == "strftime_now") return function(strftime_now);
  if (name == "range") return function(range);
  if (name == "namespace") return function(make_names);
  if (name == "dict") return function(make_dict_of);
  const bool is_unsupported = name == "cycler" || name == "joiner" || name == "lipsum";
  if (is_unsupported) budget.fail("the function '{}' is not supported", name);
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

}  // namespace quern::chat
