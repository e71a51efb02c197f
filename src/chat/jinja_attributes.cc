// object.name and object[key].
#include <string>

#include "chat/jinja_methods.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"
#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

std::string object_name(const Value& object) {
  return object.is_none() ? "None" : fmt::format("{} object", object.type());
}

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
}

Value cycle(Rendering& rendering, size_t index, const Arguments& arguments) {
  if (arguments.positional.empty()) rendering.fail("'cycle' needs an argument");
  return arguments.positional[index % arguments.positional.size()];
}

Value neighbour(const Loop& loop, bool exists, size_t index, std::string_view name) {
  return exists ? (*loop.items)[index] : Value::undefined(fmt::format("there is no {} item", name));
}

Value loop_attribute(Rendering& rendering, const Value& object, std::string_view name) {
  const Loop& loop = *object.loop();
  const size_t count = loop.items->size();
  const size_t index = loop.index;
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(count - index);
  if (name == "revindex0") return Value(count - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == count);
  if (name == "length") return Value(count);
  if (name == "depth") return Value(1);
  if (name == "depth0") return Value(0);
  if (name == "previtem") return neighbour(loop, index > 0, index - 1, "previous");
  if (name == "nextitem") return neighbour(loop, index + 1 < count, index + 1, "next");
  if (name == "changed") rendering.fail("'loop.changed' is not supported");
  if (name != "cycle") return no_attribute(object, name);
  return Value(std::make_shared<const Callable>(
      Callable{[index](Rendering& caller, const Arguments& arguments) { return cycle(caller, index, arguments); }}));
}

Value bind_method(const Value& self, Method method) {
  const auto call = [self, method](Rendering& rendering, const Arguments& arguments) {
    return method(rendering, self, arguments);
  };
  return Value(std::make_shared<const Callable>(Callable{call, self.depth()}));
}

// The position that a subscript means, or the size if there is none.
size_t position_of(int64_t index, size_t size) {
  const auto signed_size = static_cast<int64_t>(size);
  if (index < 0) index += signed_size;
  return index >= 0 && index < signed_size ? static_cast<size_t>(index) : size;
}

Value character_at(Budget& budget, const Text& text, size_t index) {
  const bool is_ascii = text.characters == text.bytes.size();
  if (!is_ascii) budget.read(text.bytes.size());
  const size_t start = is_ascii ? index : offset_of(text.bytes, index);
  return make_text(budget, text.bytes.substr(start, offset_of(std::string_view(text.bytes).substr(start), 1)));
}

const Value* find_item(Budget& budget, const Value& object, const Value& key, Value& made) {
  const Sequence* sequence = object.sequence();
  if (sequence && sequence->kind <= SequenceKind::kRange && key.integer()) {
    const size_t at = position_of(*key.integer(), sequence->items.size());
    return at < sequence->items.size() ? &sequence->items[at] : nullptr;
  }
  if (object.text() && key.integer()) {
    const size_t at = position_of(*key.integer(), object.text()->characters);
    if (at == object.text()->characters) return nullptr;
    made = character_at(budget, *object.text(), at);
    return &made;
  }
  const bool is_key = key.text() || key.number() || key.is_none();
  return object.dict() && is_key ? object.dict()->find(budget, key) : nullptr;
}

}  // namespace

Value attribute_of(Rendering& rendering, const Value& object, std::string_view name) {
  require_defined(rendering, object);
  if (name.starts_with("__")) rendering.fail("the attribute '{}' is not accessible", name);
  if (object.loop()) return loop_attribute(rendering, object, name);
  if (const Method method = find_method(rendering, object, name)) return bind_method(object, method);
  const Dict* dict = object.names() ? &object.names()->attributes : object.dict();
  const Value* found = dict ? dict->find(rendering, Value(name)) : nullptr;
  return found ? *found : no_attribute(object, name);
}

Value item_of(Rendering& rendering, const Value& object, const Value& key) {
  require_defined(rendering, object);
  Value made;
  if (const Value* found = find_item(rendering, object, key, made)) return *found;
  if (key.text()) return attribute_of(rendering, object, key.text()->bytes);
  const std::string shown = key.number() ? to_text(rendering, key) : fmt::format("of type '{}'", key.type());
  return Value::undefined(fmt::format("'{}' has no element {}", object_name(object), shown));
}

}  // namespace quern::chat
