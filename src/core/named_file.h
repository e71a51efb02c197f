// Locks on files that others may remove or replace: they hold for a name only while the name leads to that file.
#pragma once

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace quern {

// Whether `path` still leads to the open file.
inline bool still_has_name(int descriptor, const std::filesystem::path& path) {
  struct stat open_file = {}, named = {};
  return fstat(descriptor, &open_file) == 0 && lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

// For the creator of a temporary: takes the lock that keeps it from remove_leftovers(). False when that was quicker and
// the name is gone. Where the file system has no locks nothing is removed either.
inline bool lock_new_file(int descriptor, const std::filesystem::path& path) {
  while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
  }
  return still_has_name(descriptor, path);
}

}  // namespace quern
