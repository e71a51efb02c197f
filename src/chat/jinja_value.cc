#include "chat/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace quern::chat {
namespace {

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

// Equal for keys that are equal in Python, where 1, 1.0 and true are one key.
std::string canonical_key(const Budget& budget, const Value& key) {
  if (const Text* text = key.text()) return "s" + text->bytes;
  if (key.is_none()) return "n";
  if (const auto integer = key.integer()) return fmt::format("i{}", *integer);
  const auto number = key.number();
  if (!number) budget.fail("a value of type '{}' cannot be a key of a dict", key.type());
  const bool whole = std::abs(*number) < 0x1p63 && std::floor(*number) == *number;
  return whole ? fmt::format("i{}", static_cast<int64_t>(*number)) : fmt::format("f{}", *number);
}

void check_depth(const Budget& budget, size_t depth) {
  if (depth > kMaxValueDepth) budget.fail("values are nested more than {} levels deep", kMaxValueDepth);
}

Value make_checked(Budget& budget, const nlohmann::ordered_json& json, size_t depth);

Value make_array(Budget& budget, const nlohmann::ordered_json& json, size_t depth) {
  Values items;
  for (const auto& item : json) items.push_back(make_checked(budget, item, depth + 1));
  return make_list(budget, std::move(items));
}

Value make_object(Budget& budget, const nlohmann::ordered_json& json, size_t depth) {
  Dict dict;
  for (const auto& [key, item] : json.items()) {
    if (!is_utf8(key)) budget.fail("a key of the variables is not UTF-8: {}", in_quotes(key));
    dict.set(budget, Value(key), make_checked(budget, item, depth + 1));
  }
  return make_dict(budget, std::move(dict));
}

Value make_string(const Budget& budget, const std::string& text) {
  if (!is_utf8(text)) budget.fail("a text of the variables is not UTF-8: {}", in_quotes(text));
  return Value(text);
}

Value make_unsigned(const Budget& budget, uint64_t number) {
  if (number > INT64_MAX) budget.fail("the number {} of the variables is larger than {}", number, INT64_MAX);
  return Value(number);
}

Value make_checked(Budget& budget, const nlohmann::ordered_json& json, size_t depth) {
  check_depth(budget, depth);
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return Value(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value(json.get<int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned:
      return make_unsigned(budget, json.get<uint64_t>());
    case nlohmann::ordered_json::value_t::number_float:
      return Value(json.get<double>());
    case nlohmann::ordered_json::value_t::string:
      return make_string(budget, json.get_ref<const std::string&>());
    case nlohmann::ordered_json::value_t::array:
      return make_array(budget, json, depth);
    case nlohmann::ordered_json::value_t::object:
      return make_object(budget, json, depth);
    default:
      return Value();
  }
}

std::string_view type_of(const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      return "list";
    case SequenceKind::kTuple:
      return "tuple";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kKeys:
      return "dict_keys";
    case SequenceKind::kValues:
      return "dict_values";
    case SequenceKind::kItems:
      return "dict_items";
    case SequenceKind::kIterator:
      return "generator";
  }
  return "";
}

}  // namespace

Text::Text(std::string text, bool markup)
    : bytes(std::move(text)), characters(count_characters(bytes)), is_markup(markup) {}

Value::Value(std::string text) : data_(std::make_shared<const Text>(std::move(text))) {}

Value Value::undefined(std::string reason) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

std::optional<int64_t> Value::integer() const {
  if (const bool* flag = std::get_if<bool>(&data_)) return *flag ? 1 : 0;
  if (const int64_t* integer = std::get_if<int64_t>(&data_)) return *integer;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const double* number = std::get_if<double>(&data_)) return *number;
  if (const auto whole = integer()) return static_cast<double>(*whole);
  return std::nullopt;
}

size_t Value::depth() const {
  if (const Sequence* items = sequence()) return items->depth;
  if (const Callable* function = callable()) return function->depth;
  if (const Loop* state = loop()) return state->depth;
  return dict() ? dict()->depth() : 0;
}

std::string_view Value::type() const {
  if (const Sequence* items = sequence()) return type_of(*items);
  constexpr std::string_view kNames[] = {"Undefined", "NoneType", "bool",      "int",      "float",      "str",
                                         "",          "dict",     "Namespace", "function", "LoopContext"};
  return kNames[data_.index()];
}

void Dict::set(const Budget& budget, Value key, Value value) {
  depth_ = std::max(depth_, value.depth() + 1);
  check_depth(budget, depth_);
  const auto [found, is_new] = index_.emplace(canonical_key(budget, key), entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[found->second].second = std::move(value);
  }
}

const Value* Dict::find(const Budget& budget, const Value& key) const {
  const auto found = index_.find(canonical_key(budget, key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

Value make_text(Budget& budget, std::string text) {
  budget.allocate(sizeof(Text) + text.size());
  return Value(std::move(text));
}

Value make_markup(Budget& budget, std::string text) {
  budget.allocate(sizeof(Text) + text.size());
  return Value(std::make_shared<const Text>(std::move(text), true));
}

Value make_sequence(Budget& budget, SequenceKind kind, Values items) {
  budget.allocate(sizeof(Sequence) + items.size() * sizeof(Value));
  const size_t depth = depth_of(budget, items) + 1;
  return Value(std::make_shared<const Sequence>(Sequence{kind, std::move(items), depth, ""}));
}

Value make_dict(Budget& budget, Dict dict) {
  constexpr size_t kEntry = 2 * sizeof(Value) + 96;  // with its node in the tree
  budget.allocate(sizeof(Dict) + dict.entries().size() * kEntry);
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

Value make_iterator(Budget& budget, Values items) {
  return make_sequence(budget, SequenceKind::kIterator, std::move(items));
}

Value make_value(Budget& budget, const nlohmann::ordered_json& json) { return make_checked(budget, json, 0); }

size_t depth_of(const Budget& budget, const Values& values) {
  size_t depth = 0;
  for (const Value& value : values) depth = std::max(depth, value.depth());
  check_depth(budget, depth + 1);
  return depth;
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const auto number = value.number()) return *number != 0;
  if (const Text* text = value.text()) return !text->bytes.empty();
  if (const Sequence* items = value.sequence()) return items->kind == SequenceKind::kIterator || !items->items.empty();
  return !value.dict() || !value.dict()->entries().empty();
}

}  // namespace quern::chat
