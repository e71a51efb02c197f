// Prints warnings of the library on standard error.
#pragma once

#include <cstdio>
#include <string>

#include "core/text.h"
#include "report/output.h"
#include "run/observer.h"

namespace quern::cli {

struct Warnings : train::Observer {
  void on_warning(const std::string& text) override {
    report::Output(stderr).print("quern: warning: {}\n", printable(text));
  }
};

}  // namespace quern::cli
