// Shows how far the computation of a long prompt has come.
#pragma once

#include <chrono>
#include <cstddef>

#include "cli/progress.h"

namespace quern::cli {

// A status line on the terminal between start() and stop(), when nothing else is written to it: a decoder also computes
// part of a text again while the text is printed, and the status would erase its last line. Not in the first second:
// most prompts take less.
class PromptProgress {
 public:
  void start();
  void update(size_t done, size_t total);
  void stop();

 private:
  bool active_ = false;
  std::chrono::steady_clock::time_point start_;
  Progress line_;
};

}  // namespace quern::cli
