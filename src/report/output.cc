#include "report/output.h"

#include <stdio_ext.h>

#include <cerrno>

namespace quern::report {

void Output::write(std::string_view text) noexcept {
  errno = 0;
  // The count alone does not tell: glibc counts what a line-buffered stream took over and then failed to write.
  if (std::fwrite(text.data(), 1, text.size(), file_) < text.size() || std::ferror(file_) != 0) forget_failure();
}

void Output::flush() noexcept {
  errno = 0;
  if (std::fflush(file_) != 0) forget_failure();
}

// What could not be written must not fail once more at exit. Later lines are tried again: a disk may have room by then.
void Output::forget_failure() noexcept {
  if (error_ == 0) error_ = errno == 0 ? EIO : errno;
  __fpurge(file_);
  std::clearerr(file_);
}

}  // namespace quern::report
