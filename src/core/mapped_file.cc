#include "core/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "core/descriptor.h"
#include "core/error.h"

namespace quern {
MappedFile::MappedFile(std::filesystem::path path, EmptyFile empty) : path_(std::move(path)) {
  const Descriptor file(path_);
  const auto size = static_cast<size_t>(regular_file_status(file, path_).st_size);
  if (size == 0) {  // mmap refuses a length of zero
    if (empty == EmptyFile::kRefused) throw Error("[files] {}: the file is empty", path_.string());
    return;
  }
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    throw Error("[files] {}: cannot map {} bytes: {}", path_.string(), size, std::generic_category().message(errno));
  }
  text_ = {static_cast<const char*>(memory), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), text_(std::exchange(other.text_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(text_, taken.text_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!text_.empty()) ::munmap(const_cast<char*>(text_.data()), text_.size());
}

void MappedFile::release(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);  // if not, nothing is lost
}

void MappedFile::expect_sequential() const noexcept {
  if (!text_.empty()) ::madvise(const_cast<char*>(text_.data()), text_.size(), MADV_SEQUENTIAL);
}

}  // namespace quern
