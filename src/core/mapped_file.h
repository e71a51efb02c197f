// A file as read-only memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace quern {

enum class EmptyFile { kRefused, kAllowed };

// Maps the whole file when made and unmaps it when destroyed: pages are read on first use and belong to the system's
// file cache, so a file of any size costs address space, not memory. Throws Error naming the file when it is missing,
// cannot be read, is not a regular file, or is empty and may not be. A file that another program shortens while it is
// mapped ends this process with SIGBUS; nothing of ours does, since files are replaced and never rewritten in place.
// Move-only; any number of threads may read.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(std::filesystem::path path, EmptyFile empty = EmptyFile::kAllowed);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Starts at a page boundary; valid as long as this object, also after it was moved.
  std::string_view text() const noexcept { return text_; }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(text_)); }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Tells the system that all of it will be read once, from front to back.
  void expect_sequential() const noexcept;

  // Gives the memory of these bytes of a mapped file, where they fill whole pages, back to the system. They can still
  // be read, from the file cache: for those who go through a large file once and count what they occupy.
  static void release(std::span<const std::byte> bytes) noexcept;

 private:
  std::filesystem::path path_;
  std::string_view text_;
};

}  // namespace quern
