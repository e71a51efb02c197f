// The arguments of a call, matched with the parameters of a filter, test, method or function.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja_value.h"

namespace quern::chat {

class BoundArguments {
 public:
  // `callee` is for messages. The first `required` of `names` must be given. Fails for other arguments.
  BoundArguments(Budget& budget, std::string_view callee, const Arguments& arguments,
                 std::initializer_list<std::string_view> names, size_t required);

  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](size_t i) const { return *values_[i]; }
  bool is_given(size_t i) const { return has(i) && !values_[i]->is_none(); }  // none stands for a default

  // The argument if it is given, otherwise the default. Fails if it is of another type.
  std::string text(size_t i, std::string_view otherwise = "") const;
  int64_t integer(size_t i, int64_t otherwise) const;
  bool flag(size_t i, bool otherwise) const { return has(i) ? is_true(*values_[i]) : otherwise; }

 private:
  Budget& budget_;
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace quern::chat
