#include "core/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "core/descriptor.h"
#include "core/error.h"

namespace quern {
MappedFile::MappedFile(std::filesystem::path path, EmptyFile empty) : path_(std::move(path)) {
  const Descriptor file(path_);
  const struct stat status = regular_file_status(file, path_);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) {  // mmap rejects a length of zero
    if (empty == EmptyFile::kRefused) throw Error("[files] {}: the file is empty", path_.string());
    return;
  }
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    throw Error("[files] {}: cannot map {} bytes: {}", path_.string(), size, std::generic_category().message(errno));
  }
  text_ = {static_cast<const char*>(memory), size};
  device_ = status.st_dev;
  inode_ = status.st_ino;
  try {
    guard_ = MappingGuard(memory, size);
  } catch (...) {
    ::munmap(memory, size);
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      text_(std::exchange(other.text_, {})),
      device_(other.device_),
      inode_(other.inode_),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(text_, taken.text_);
  std::swap(device_, taken.device_);
  std::swap(inode_, taken.inode_);
  guard_ = std::move(taken.guard_);  // swaps too
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = MappingGuard();
  if (!text_.empty()) ::munmap(const_cast<char*>(text_.data()), text_.size());
}

void MappedFile::check_intact() const {
  if (text_.empty()) return;
  struct stat status = {};
  const bool is_same = ::stat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  const auto size = is_same ? static_cast<size_t>(status.st_size) : text_.size();
  if (!guard_.lost() && size >= text_.size()) return;
  throw Error("[files] {}: was truncated while in use: expected {} bytes, found {}", path_.string(), text_.size(),
              is_same && size < text_.size() ? std::to_string(size) : "fewer");
}

void MappedFile::release(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);  // on failure, nothing is lost
}

void MappedFile::expect_sequential() const noexcept {
  if (!text_.empty()) ::madvise(const_cast<char*>(text_.data()), text_.size(), MADV_SEQUENTIAL);
}

}  // namespace quern
