// Locks on files that other processes may remove or replace: a lock is valid for a name only while the name refers to
// that file.
#pragma once

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace quern {

// Whether `path` still refers to the open file.
inline bool still_has_name(int descriptor, const std::filesystem::path& path) {
  struct stat open_file = {}, named = {};
  return fstat(descriptor, &open_file) == 0 && lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

// For the creator of a temporary file: takes the lock that protects it from remove_leftovers(). Returns false if
// remove_leftovers() was faster and the name is gone. On file systems without locks, nothing is removed.
inline bool lock_new_file(int descriptor, const std::filesystem::path& path) {
  while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
  }
  return still_has_name(descriptor, path);
}

}  // namespace quern
