#include "chat/jinja_arguments.h"

#include <algorithm>

#include "chat/jinja_operators.h"

namespace quern::chat {

BoundArguments::BoundArguments(Budget& budget, std::string_view callee, const Arguments& arguments,
                               std::initializer_list<std::string_view> names, size_t required)
    : budget_(budget), callee_(callee), names_(names), values_(names.size(), nullptr) {
  const Values& positional = arguments.positional;
  if (positional.size() > names_.size()) {
    budget.fail("'{}' takes at most {} arguments, found {}", callee, names_.size(), positional.size());
  }
  for (size_t i = 0; i < positional.size(); ++i) values_[i] = &positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) budget.fail("'{}' has no argument '{}'", callee, name);
    const Value*& place = values_[static_cast<size_t>(found - names_.begin())];
    if (place) budget.fail("'{}' is given its argument '{}' twice", callee, name);
    place = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i]) budget.fail("'{}' needs an argument '{}'", callee, names_[i]);
  }
}

std::string BoundArguments::text(size_t i, std::string_view otherwise) const {
  if (!has(i)) return std::string(otherwise);
  require_defined(budget_, *values_[i]);
  const Text* text = values_[i]->text();
  if (!text) budget_.fail("argument '{}' of '{}' is of type '{}', not a text", names_[i], callee_, values_[i]->type());
  budget_.allocate(text->bytes.size());
  return text->bytes;
}

int64_t BoundArguments::integer(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  require_defined(budget_, *values_[i]);
  const auto integer = values_[i]->integer();
  if (!integer) {
    budget_.fail("argument '{}' of '{}' is of type '{}', not an integer", names_[i], callee_, values_[i]->type());
  }
  return *integer;
}

}  // namespace quern::chat
