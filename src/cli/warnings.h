// Warnings of the library, as lines on standard error.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/text.h"
#include "train/observer.h"

namespace quern::cli {

struct Warnings : train::Observer {
  void on_warning(const std::string& text) override { fmt::print(stderr, "quern: warning: {}\n", printable(text)); }
};

}  // namespace quern::cli
