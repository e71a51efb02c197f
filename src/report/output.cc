#include "report/output.h"

#include <poll.h>
#include <stdio_ext.h>

#include <cerrno>

namespace quern::report {

// A reader that is alive but does not read (a pager, a stopped `tee`, Ctrl-S) would block the writer forever, and
// signals that ask to save would have no effect. Waits once; after that, lines that cannot be written immediately are
// lost.
bool Output::is_ready() noexcept {
  pollfd stream = {.fd = fileno(file_), .events = POLLOUT, .revents = 0};
  const bool in_memory = stream.fd < 0;
  if (in_memory || poll(&stream, 1, stalled_ ? 0 : kPatience) != 0) {  // ready, or an error that writing will report
    stalled_ = false;
    return true;
  }
  stalled_ = true;
  errno = EAGAIN;
  forget_failure();
  return false;
}

void Output::write(std::string_view text) noexcept {
  if (!is_ready()) return;
  errno = 0;
  // The count alone is not enough: glibc counts bytes that a line-buffered stream accepted and then failed to write.
  if (std::fwrite(text.data(), 1, text.size(), file_) < text.size() || std::ferror(file_) != 0) forget_failure();
}

void Output::flush() noexcept {
  if (!is_ready()) return;
  errno = 0;
  if (std::fflush(file_) != 0) forget_failure();
}

// Discards the unwritten data, so that it does not fail again at exit. Later lines are attempted: the disk may have
// space by then.
void Output::forget_failure() noexcept {
  if (error_ == 0) error_ = errno == 0 ? EIO : errno;
  __fpurge(file_);
  std::clearerr(file_);
}

}  // namespace quern::report
