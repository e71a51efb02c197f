#include "core/steady_file.h"

#include <cassert>
#include <utility>

#include "core/descriptor.h"

namespace quern {
namespace {

int64_t change_time(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

SteadyFile::SteadyFile(std::filesystem::path path) : path_(std::move(path)) {
  const struct stat status = regular_file_status(Descriptor(path_), path_);
  size_ = static_cast<uint64_t>(status.st_size);
  changed_ = change_time(status);
}

void SteadyFile::read(uint64_t begin, uint64_t end, std::string& out) const {
  assert(begin <= end && end <= size_);
  const Descriptor file(path_);
  const struct stat status = regular_file_status(file, path_);
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size != size_) {
    throw Error("[files] {}: changed while it was in use: expected {} bytes, found {}", path_.string(), size_, size);
  }
  if (change_time(status) != changed_) {
    throw Error("[files] {}: changed while it was in use: expected no modification, found one", path_.string());
  }
  out.resize(end - begin);
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(file.get(), out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("[files] {}: cannot read: {}", path_.string(), std::generic_category().message(errno));
    if (got == 0) {
      throw Error("[files] {}: changed while it was in use: expected {} bytes, found {}", path_.string(), size_,
                  begin + done);
    }
    done += static_cast<size_t>(got);
  }
}

}  // namespace quern
