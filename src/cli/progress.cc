#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "report/output.h"

namespace quern::cli {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::string_view what) {
  if (!terminal_) return;
  report::Output(stderr).print("\r\033[K{} ...", what);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  report::Output(stderr).print("\r\033[K");
  shown_ = false;
}

}  // namespace quern::cli
