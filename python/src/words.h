// Error messages in Python's words. The library's messages also serve the program and say "--resume"; a caller of the
// package types resume=True.
#pragma once

#include <string>
#include <string_view>

namespace quern::python {

// The message as one line that is safe for a terminal, with each flag replaced by the argument of the same name:
// --resume becomes resume=True, --steps 500 becomes steps=500, and --set train.steps=500 becomes
// set={"train.steps": 500}.
std::string in_python_words(std::string_view message);

}  // namespace quern::python
