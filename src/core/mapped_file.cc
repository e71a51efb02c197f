#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace quern {
namespace {

// The bytes, or the reason why not in errno; EINVAL for what is not a regular file.
std::span<const std::byte> map_descriptor(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return {};
  errno = S_ISREG(status.st_mode) ? 0 : EINVAL;
  const auto size = static_cast<size_t>(status.st_size);
  if (errno != 0 || size == 0) return {};
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<const std::byte*>(memory), size};
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not make us wait
  int code = errno;
  if (descriptor >= 0) {
    bytes_ = map_descriptor(descriptor);
    code = bytes_.empty() ? errno : 0;
    close(descriptor);
  }
  if (descriptor >= 0 && code == EINVAL) throw Error("[files] {}: expected a regular file", path.native());
  if (code != 0) throw Error("[files] {}: cannot open: {}", path.native(), std::generic_category().message(code));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  std::swap(bytes_, taken.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::expect_sequential() const noexcept {
  if (!bytes_.empty()) madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_SEQUENTIAL);
}

}  // namespace quern
