// A folder of its own for a test, removed afterwards.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "core/temporary_folder.h"

namespace quern::test {

// In memory where there is such a place: tests of saving sync hundreds of times, and a disk takes 10 ms for each.
class TemporaryFolder : public ::quern::TemporaryFolder {
 public:
  TemporaryFolder()
      : ::quern::TemporaryFolder(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path()) {}
};

// The names of what lies in `folder`, hidden files included.
inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

}  // namespace quern::test
