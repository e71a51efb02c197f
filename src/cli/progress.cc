#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace quern::cli {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::string_view what) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K{} ...", what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace quern::cli
