#include "core/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
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

void MappedFile::expect_sequential() const noexcept {
  if (!text_.empty()) ::madvise(const_cast<char*>(text_.data()), text_.size(), MADV_SEQUENTIAL);
}

}  // namespace quern
