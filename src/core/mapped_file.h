// A file mapped as read-only memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/mapping_guard.h"

namespace quern {

enum class EmptyFile { kRefused, kAllowed };

// Maps the entire file on construction and unmaps it on destruction. Pages are read on first use and belong to the
// system's file cache, so a file of any size costs address space, not memory. Throws Error with the file's name if it
// is missing, cannot be read, is not a regular file, or is empty and may not be. Move-only; any number of threads may
// read.
//
// Another program may truncate the file while it is mapped. Pages that no longer exist then read as zeros
// (core/mapping_guard.h) instead of ending the process with SIGBUS, so callers must call check_intact() after reading,
// or read within read(), before they trust the data. Mapping rather than pread(), because token shards and checkpoints
// are larger than memory and are used directly from the file cache.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(std::filesystem::path path, EmptyFile empty = EmptyFile::kAllowed);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Starts at a page boundary; valid as long as this object, even after a move.
  std::string_view text() const noexcept { return text_; }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(text_)); }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Throws Error ("... was truncated while in use") if the file has been truncated since it was mapped: bytes read
  // before this call may then be zeros. A file that was replaced under its name is intact, because the mapping is of
  // the old one. Any thread; 2 us, because it queries the size: zeros within the last page raise no signal.
  void check_intact() const;

  // Whether a page that no longer exists was read. One load: for callers that read often and detect zeros in the last
  // page by other means.
  bool has_lost_pages() const noexcept { return guard_.lost(); }

  // Returns the result of body(), which reads these bytes. Throws Error if the file was truncated meanwhile, whatever
  // body() made of the zeros, even if it threw an Error itself.
  template <typename Body>
  auto read(const Body& body) const {
    try {
      if constexpr (std::is_void_v<decltype(body())>) {
        body();
        check_intact();
      } else {
        auto result = body();
        check_intact();
        return result;
      }
    } catch (const Error&) {
      check_intact();
      throw;
    }
  }

  // Advises the system that the entire file will be read once, from front to back.
  void expect_sequential() const noexcept;

  // Returns the full pages within these bytes of a mapped file to the system. The bytes can still be read, from the
  // file cache. For callers that read a large file once and account for their memory.
  static void release(std::span<const std::byte> bytes) noexcept;

 private:
  std::filesystem::path path_;
  std::string_view text_;
  uint64_t device_ = 0, inode_ = 0;  // of the file, to recognize it under its name
  MappingGuard guard_;               // of text_; destroyed before text_ is unmapped
};

}  // namespace quern
