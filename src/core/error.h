// Error with a formatted message: throw Error("[checkpoint] {}: expected version 3, found {}", path, version).
//
// The class is public (include/quern/error.h), so that programs can catch the type that the library throws. Its
// formatting constructor is defined here, because programs that use the library need not have fmt's headers.
#pragma once

#include <fmt/format.h>
#include <quern/error.h>

#include <concepts>
#include <string_view>
#include <utility>

#include "core/text.h"  // in_quotes(), for names in messages

namespace quern {

template <typename... Args>
struct detail::ErrorFormat {
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view>
  consteval ErrorFormat(const Text& text) : checked(text) {}  // implicit, like that of fmt::format_string

  fmt::format_string<Args...> checked;
};

template <typename First, typename... Rest>
Error::Error(detail::ErrorFormat<std::type_identity_t<First>, std::type_identity_t<Rest>...> format, First&& first,
             Rest&&... rest)
    : Error(fmt::format(format.checked, std::forward<First>(first), std::forward<Rest>(rest)...)) {}

}  // namespace quern
