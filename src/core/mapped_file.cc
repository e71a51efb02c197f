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

// A file descriptor that is closed at the end of the scope; a mapping outlives it.
class Descriptor {
 public:
  // Without O_NONBLOCK the opening of a named pipe would wait for a writer before we could say that it is no file.
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw Error("[files] {}: cannot open: {}", path.string(), std::generic_category().message(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

size_t regular_file_size(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    throw Error("[files] {}: cannot read: {}", path.string(), std::generic_category().message(errno));
  }
  if (S_ISDIR(status.st_mode)) throw Error("[files] {}: expected a file, found a folder", path.string());
  if (!S_ISREG(status.st_mode)) throw Error("[files] {}: expected a regular file", path.string());
  return static_cast<size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path, EmptyFile empty) : path_(std::move(path)) {
  const Descriptor file(path_);
  const size_t size = regular_file_size(file, path_);
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
