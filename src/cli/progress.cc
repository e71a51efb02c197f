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

void LongProgress::show(uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (now - begin_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  progress_.show(text_(done, total));
}

}  // namespace quern::cli
