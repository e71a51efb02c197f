// A file as read-only memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace quern {

// Pages are read when touched and shared with the page cache, so a file costs address space, not memory. Another
// program that shortens the file while it is mapped makes reads of the lost part fatal (SIGBUS); nothing of ours does,
// since files are replaced and never rewritten in place. Move-only; any number of threads may read.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);  // Error when it is missing or not a regular file
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  // Tells the system that all of it will be read once, from front to back.
  void expect_sequential() const noexcept;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace quern
