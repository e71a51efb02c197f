// The one exception type of Quern.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "core/text.h"

namespace quern {

// Bad input, file or configuration. The message is one line that starts with the place in brackets and says what was
// expected and what was found: "[checkpoint] a.safetensors: expected version 3, found 7". Whatever it names, a terminal
// can show it: see printable(). Bugs are asserts instead.
class Error : public std::runtime_error {
 public:
  template <typename... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(printable(fmt::format(format, std::forward<Args>(args)...))) {}
};

}  // namespace quern
