// Implements remove_leftovers() of files.h.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "core/files.h"
#include "core/named_file.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

// A file or directory written by this user: no link to elsewhere, no pipe that would block.
bool is_ours(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0 || status.st_uid != geteuid()) return false;
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

// The lock is held while the name is removed, so that a writer that has just created it, and is about to take the lock,
// detects the removal (lock_new_file).
void remove_if_unused(const fs::path& leftover) {
  const int descriptor = open(leftover.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  std::error_code ignored;
  const bool unused = is_ours(descriptor) && flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (unused && still_has_name(descriptor, leftover)) fs::remove_all(leftover, ignored);
  close(descriptor);
}

void remove_unused(const fs::path& folder, const std::function<bool(const std::string&)>& is_leftover) {
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (is_leftover(entry->path().filename().native())) leftovers.push_back(entry->path());
  }
  for (const fs::path& leftover : leftovers) remove_if_unused(leftover);
}

}  // namespace

void remove_leftovers(const fs::path& folder) {
  remove_unused(folder, [](const std::string& name) { return is_temporary_name(name); });
}

void remove_leftovers_of(const fs::path& file) {
  const std::string target = file.filename().native();
  remove_unused(file.has_parent_path() ? file.parent_path() : fs::path("."),
                [&](const std::string& name) { return is_temporary_name_of(name, target); });
}

}  // namespace quern
