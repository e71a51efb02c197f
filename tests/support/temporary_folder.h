// A folder of its own for a test, removed afterwards.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

namespace quern::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where there is such a place: tests of saving sync hundreds of times, and a disk takes 10 ms for each.
    const bool in_memory = access("/dev/shm", W_OK) == 0;
    const auto parent = in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (parent / "quern-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      std::perror("mkdtemp");
      std::abort();
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The names of what lies in `folder`, hidden files included.
inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

}  // namespace quern::test
