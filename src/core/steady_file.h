// A file that is read a part at a time over hours, and must not change meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace quern {

// Notes size and time of change when made; keeps nothing open, so that there may be any number. Any thread.
class SteadyFile {
 public:
  // Error when it is missing, cannot be read, or is not a regular file.
  explicit SteadyFile(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return size_; }

  // `out` becomes the bytes begin ... end - 1; end <= size(). Error when the file is gone, was changed since this
  // object was made, or cannot be read. Allocates only where `out` has to grow.
  void read(uint64_t begin, uint64_t end, std::string& out) const;

 private:
  std::filesystem::path path_;
  uint64_t size_;
  int64_t changed_;  // in nanoseconds
};

}  // namespace quern
