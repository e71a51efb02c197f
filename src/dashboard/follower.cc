#include "dashboard/follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace quern::dashboard {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

}  // namespace

void Follower::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

// The descriptor keeps the old file, so that the new one cannot have its number.
bool Follower::is_new(const struct stat& status) const {
  struct stat mine = {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &mine) != 0) return true;
  return mine.st_dev != status.st_dev || mine.st_ino != status.st_ino ||
         static_cast<uint64_t>(status.st_size) < offset_;
}

bool Follower::update() {
  struct stat status = {};
  there_ = ::stat(path_.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (!there_) return false;
  bool changed = false;
  if (is_new(status)) {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return false;
    close();
    descriptor_ = descriptor;
    changed = data_->lines() > 0;
    data_ = std::make_unique<RunData>();
    offset_ = skipped_ = 0;
    rest_.clear();
  }
  return read_to_end() || changed;
}

bool Follower::read_to_end() {
  bool changed = false;
  while (true) {
    const size_t kept = rest_.size();
    rest_.resize(kept + kBlock);
    const ssize_t read = ::pread(descriptor_, rest_.data() + kept, kBlock, static_cast<off_t>(offset_));
    rest_.resize(kept + (read > 0 ? static_cast<size_t>(read) : 0));
    if (read <= 0) break;
    offset_ += static_cast<uint64_t>(read);
    changed = take_lines() || changed;
  }
  rest_.shrink_to_fit();
  return changed;
}

bool Follower::take_lines() {
  bool any = false;
  size_t begin = 0;
  while (begin < rest_.size()) {
    const void* found = std::memchr(rest_.data() + begin, '\n', rest_.size() - begin);
    if (found == nullptr) break;
    const auto end = static_cast<size_t>(static_cast<const char*>(found) - rest_.data());
    if (skipped_ > 0) {
      data_->add_too_long(kMaxLineBytes);
      skipped_ = 0;
    } else {
      data_->add(std::string_view(rest_).substr(begin, end - begin));
    }
    any = true;
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kMaxLineBytes) {
    skipped_ += rest_.size();
    rest_.clear();
  } else if (skipped_ > 0) {
    rest_.clear();
  }
  return any;
}

}  // namespace quern::dashboard
