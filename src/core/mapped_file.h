// A file as read-only memory.
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

// Maps the whole file when made and unmaps it when destroyed: pages are read on first use and belong to the system's
// file cache, so a file of any size costs address space, not memory. Throws Error naming the file when it is missing,
// cannot be read, is not a regular file, or is empty and may not be. Move-only; any number of threads may read.
//
// Another program may truncate the file while it is mapped. Pages that are gone read as zeros (core/mapping_guard.h)
// instead of ending the process with SIGBUS, so whoever has read bytes calls check_intact(), or reads within read(),
// before believing them. Mapping rather than pread() because token shards and checkpoints are larger than memory and
// are used where the file cache holds them.
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

  // Error when the file has been truncated since it was mapped, "... was truncated while in use": bytes read before
  // this call may then be zeros. A file that was replaced under its name is intact: the mapping is of the old one. Any
  // thread; 2 us, for the size is asked of the system: the zeros within the last page raise no signal.
  void check_intact() const;

  // Whether a page that is gone was read. A load: for those who read often and know zeros in the last page otherwise.
  bool has_lost_pages() const noexcept { return guard_.lost(); }

  // The result of body(), which reads these bytes. Error when the file was truncated meanwhile, whatever body() made of
  // the zeros, an Error of its own included.
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

  // Tells the system that all of it will be read once, from front to back.
  void expect_sequential() const noexcept;

  // Gives the memory of these bytes of a mapped file, where they fill whole pages, back to the system. They can still
  // be read, from the file cache: for those who go through a large file once and count what they occupy.
  static void release(std::span<const std::byte> bytes) noexcept;

 private:
  std::filesystem::path path_;
  std::string_view text_;
  uint64_t device_ = 0, inode_ = 0;  // of the file, to know it again under its name
  MappingGuard guard_;               // of text_; gone before that is unmapped
};

}  // namespace quern
