// A file descriptor opened for reading, closed at the end of the scope.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace quern {

class Descriptor {
 public:
  // Without O_NONBLOCK, opening a named pipe would block until a writer appears, before it could be rejected.
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw Error("[files] {}: cannot open: {}", path.string(), std::generic_category().message(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Throws Error unless it is a regular file.
inline struct stat regular_file_status(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    throw Error("[files] {}: cannot read: {}", path.string(), std::generic_category().message(errno));
  }
  if (S_ISDIR(status.st_mode)) throw Error("[files] {}: expected a file, found a folder", path.string());
  if (!S_ISREG(status.st_mode)) throw Error("[files] {}: expected a regular file", path.string());
  return status;
}

}  // namespace quern
