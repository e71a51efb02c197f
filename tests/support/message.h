// The message of an Error.
#pragma once

#include <string>

#include "core/error.h"

namespace quern::test {

// The message of the Error that `body` throws; "no error" when it throws none.
inline std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace quern::test
