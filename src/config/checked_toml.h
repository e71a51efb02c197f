// toml++ with its assertions enabled in every build.
#pragma once

#include <stdexcept>

namespace quern::train {

struct TomlAssumptionFailed : std::logic_error {
  using std::logic_error::logic_error;
};

// A function, because some assertions are in noexcept code, where g++ warns about a visible throw.
[[noreturn]] inline void toml_assumption_failed(const char* what) { throw TomlAssumptionFailed(what); }

}  // namespace quern::train

// Some assertions of toml++ 3.3 fail on damaged files ("[=" is enough). In a release build it turns them into compiler
// assumptions, so a failure is undefined behaviour. Here they are checked in every build, and a failure aborts parsing.
// Only one file may include this, since everything in toml++ is inline.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : quern::train::toml_assumption_failed(#expr))
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
