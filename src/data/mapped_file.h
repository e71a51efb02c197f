// A file as memory, read only.
#pragma once

#include <filesystem>
#include <string_view>

namespace quern::data {

enum class EmptyFile { kRefused, kAllowed };

// Maps the whole file when made and unmaps it when destroyed: pages are read on first use and belong to the system's
// file cache, so a corpus of any size costs no memory of ours. Throws Error naming the file when it is missing, cannot
// be read, is not a regular file, or is empty and may not be. Reading is safe from any thread. A file that another
// process shortens while it is mapped ends this process with SIGBUS, as with every mapped file.
class MappedFile {
 public:
  explicit MappedFile(std::filesystem::path path, EmptyFile empty = EmptyFile::kRefused);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Starts at a page boundary; valid as long as this object, also after it was moved.
  std::string_view bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

  // The file will be read from start to end, once: the system reads ahead.
  void expect_sequential() const;

 private:
  std::filesystem::path path_;
  std::string_view bytes_;
};

}  // namespace quern::data
