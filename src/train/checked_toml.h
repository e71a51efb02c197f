// toml++, with what it takes for granted checked.
#pragma once

#include <stdexcept>

namespace quern::train {

struct TomlAssumptionFailed : std::logic_error {
  using std::logic_error::logic_error;
};

// A function, because some of the places are noexcept and g++ warns about a throw that it can see there.
[[noreturn]] inline void toml_assumption_failed(const char* what) { throw TomlAssumptionFailed(what); }

}  // namespace quern::train

// toml++ 3.3 asserts some things that a damaged file can break ("[=" is enough), and in a release build tells the
// compiler that they hold, which is undefined behaviour. Here they are checked in every build, and a broken one ends
// the parse. Only one file may include this, since everything in toml++ is inline.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : quern::train::toml_assumption_failed(#expr))
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
