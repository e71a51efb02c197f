// Values of the template language. They mean what they mean in Python. Copies share their contents, which never change,
// except that a namespace is assigned to and an iterator is used up.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja_budget.h"

namespace quern::chat {

struct Undefined {
  std::shared_ptr<const std::string> reason;  // the message of an operation on it
};
struct None {};
struct Text;
struct Sequence;
class Dict;
struct Namespace;
struct Callable;
struct Loop;

class Value {
 public:
  Value() : data_(None{}) {}
  template <std::same_as<bool> Bool>
  Value(Bool value) : data_(value) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Value(Integer value) : data_(static_cast<int64_t>(value)) {}
  Value(double value) : data_(value) {}
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  template <typename Contents>
  Value(std::shared_ptr<Contents> contents) : data_(std::move(contents)) {}
  static Value undefined(std::string reason);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }

  // The contents, or nullptr if the value is of another kind.
  const Text* text() const { return pointer<const Text>(); }
  const Sequence* sequence() const { return pointer<const Sequence>(); }
  const Dict* dict() const { return pointer<const Dict>(); }
  Namespace* names() const { return pointer<Namespace>(); }
  const Callable* callable() const { return pointer<const Callable>(); }
  const Loop* loop() const { return pointer<const Loop>(); }

  std::optional<int64_t> integer() const;  // of an int, or of a bool, which is one in Python
  std::optional<double> number() const;    // of an int, a bool or a float

  const std::string& reason() const { return *std::get<Undefined>(data_).reason; }
  size_t depth() const;           // of values inside each other; 0 if it contains none
  std::string_view type() const;  // Python's name of the type

 private:
  template <typename Contents>
  Contents* pointer() const {
    const auto* found = std::get_if<std::shared_ptr<Contents>>(&data_);
    return found ? found->get() : nullptr;
  }

  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<const Callable>,
               std::shared_ptr<const Loop>>
      data_;
};

using Values = std::vector<Value>;

struct Text {
  explicit Text(std::string text, bool markup = false);
  std::string bytes;  // valid UTF-8
  size_t characters;  // equal to the number of bytes in ASCII, which is then indexed directly
  // The result of the filters `safe` and `escape`: adding another text to it escapes that text for HTML. Printing and
  // all other operations give plain text.
  bool is_markup;
};

// What Python offers as several types that mostly behave as a list does.
enum class SequenceKind : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };

struct Sequence {
  SequenceKind kind;
  Values items;
  size_t depth;
  std::string printed;       // of a range: range(0, 3)
  mutable size_t taken = 0;  // of an iterator: items that were already used
};

// Preserves the order of its keys: strings, numbers, bools and none.
class Dict {
 public:
  // Replaces the value of an equal key. Fails if `key` cannot be a key.
  void set(const Budget& budget, Value key, Value value);
  const Value* find(const Budget& budget, const Value& key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  size_t depth() const { return depth_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::map<std::string, size_t> index_;  // a tree, so that no choice of keys makes it slow
  size_t depth_ = 1;
};

struct Namespace {
  Dict attributes;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string_view, Value>> keywords;
};

class Rendering;

struct Callable {
  std::function<Value(Rendering&, const Arguments&)> call;
  size_t depth = 0;  // of the value that a method belongs to
};

// `loop` inside of a for loop, at one of its items.
struct Loop {
  std::shared_ptr<const Values> items;
  size_t index;  // from 0
  size_t depth;
};

// New values, counted in the budget. Containers fail if they are nested too deeply, which keeps every recursive walk
// over a value within the stack.
Value make_text(Budget& budget, std::string text);
Value make_markup(Budget& budget, std::string text);
Value make_sequence(Budget& budget, SequenceKind kind, Values items);
inline Value make_list(Budget& budget, Values items) {
  return make_sequence(budget, SequenceKind::kList, std::move(items));
}
Value make_dict(Budget& budget, Dict dict);
Value make_iterator(Budget& budget, Values items);
Value make_value(Budget& budget, const nlohmann::ordered_json& json);

bool is_true(const Value& value);

// That of the deepest. Fails if a value around them would be too deep.
size_t depth_of(const Budget& budget, const Values& values);

}  // namespace quern::chat
