// A file that is read in parts over hours and must not change in the meantime.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace quern {

// Records size and modification time on construction. Holds no file descriptor, so there can be any number of these.
// Any thread.
class SteadyFile {
 public:
  // Throws Error if the file is missing, cannot be read, or is not a regular file.
  explicit SteadyFile(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return size_; }

  // Sets `out` to the bytes begin ... end - 1; end <= size(). Throws Error if the file is missing, has changed since
  // this object was constructed, or cannot be read. Allocates only if `out` has to grow.
  void read(uint64_t begin, uint64_t end, std::string& out) const;

 private:
  std::filesystem::path path_;
  uint64_t size_;
  int64_t changed_;  // in nanoseconds
};

}  // namespace quern
