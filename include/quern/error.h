// The one exception type of Quern.
//
//   try {
//     const quern::Model model = quern::Model::load("runs/first");
//   } catch (const quern::Error& error) {
//     std::fprintf(stderr, "%s\n", error.what());  // "[run] runs/first: expected a run, found no such folder; ..."
//   }
#pragma once

#if __cplusplus < 202002L
#error "Quern's headers need C++20: compile with -std=c++20, or link the CMake target quern::quern"
#endif

#include <stdexcept>
#include <string>
#include <type_traits>

namespace quern {

namespace detail {
template <typename... Args>
struct ErrorFormat;  // a format string that is checked at compile time; defined and used only inside the library
}

// Bad input, a bad file or a bad configuration. The message is one line that starts with the location in brackets and
// says what was expected and what was found: "[checkpoint] a.safetensors: expected version 3, found 7". It is safe to
// show on a terminal, whatever bytes the file or name contained: see the constructor.
class Error : public std::runtime_error {
 public:
  // Control characters, line breaks and bytes that are not UTF-8 are escaped in what().
  explicit Error(const std::string& message);

  template <typename First, typename... Rest>
  explicit Error(detail::ErrorFormat<std::type_identity_t<First>, std::type_identity_t<Rest>...> format, First&& first,
                 Rest&&... rest);
};

// A replay buffer's rate limit did not admit a call in time.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

}  // namespace quern
