#include "replay/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/byte_size.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/files.h"
#include "core/named_file.h"
#include "core/temporary_name.h"
#include "core/text.h"

namespace quern::replay {
namespace {

constexpr const char* kSharedFolder = "/dev/shm";  // as in the C library's shm_open()
constexpr size_t kMaxSharedName = 200;

std::string reason(int code) { return std::generic_category().message(code); }

// The number in a file, such as a container's limit; nullopt if there is no such file or no number ("max").
std::optional<uint64_t> number_in(const char* path) {
  uint64_t number = 0;
  std::ifstream file(path);
  return file >> number ? std::optional(number) : std::nullopt;
}

// Memory available in the container's control group. The group counts its file cache as used, although the cache can be
// reclaimed, so the cache is added back.
uint64_t available_in_group() {
  const auto max = number_in("/sys/fs/cgroup/memory.max"), used = number_in("/sys/fs/cgroup/memory.current");
  if (!max || !used) return std::numeric_limits<uint64_t>::max();
  uint64_t cached = 0;
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  for (std::string name, value; file >> name >> value;) {
    if (name == "active_file" || name == "inactive_file") cached += std::strtoull(value.c_str(), nullptr, 10);
  }
  const uint64_t taken = *used - std::min(*used, cached);
  return *max - std::min(*max, taken);
}

// Bytes available without swapping; the largest number if unknown.
uint64_t available_in_system() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kilobytes) == 1) return kilobytes * 1024;
  }
  return std::numeric_limits<uint64_t>::max();
}

[[noreturn]] void no_room(const Storage& storage, uint64_t bytes, const std::string& why) {
  throw Error("{}: cannot get {}: {}", storage.text(), rounded_bytes(bytes), why);
}

// Touching overcommitted memory that does not exist kills the process, so availability is checked first.
void expect_available(const Storage& storage, uint64_t bytes) {
  const uint64_t available = std::min(available_in_system(), available_in_group());
  if (bytes > available) no_room(storage, bytes, fmt::format("{} are available", rounded_bytes(available)));
}

std::string folder_of(const Storage& storage) {
  if (storage.kind == Storage::Kind::kShared) return kSharedFolder;
  const std::filesystem::path path = storage.name;
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

// The umask decides whether others can read a file. Only the owner may write either kind: see expect_ours().
mode_t mode_of(const Storage& storage) { return storage.kind == Storage::Kind::kShared ? 0600 : 0644; }

// A process that can write to the memory can make this one read anything, and can truncate it while mapped.
void expect_ours(const Storage& storage, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) throw Error("{}: expected a regular file, found something else", storage.text());
  if (status.st_uid != geteuid()) {
    throw Error("{}: expected a file of user {}, who attaches, found one of user {}; attach as that user",
                storage.text(), geteuid(), status.st_uid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error("{}: expected a file that only its owner can write, found mode {:o}; run chmod go-w {}", storage.text(),
                status.st_mode & 07777, storage.path());
  }
}

[[noreturn]] void taken(const Storage& storage) {
  throw Error("{}: expected a new name, found one that exists; attach to it or remove it", storage.text());
}

}  // namespace

std::string Storage::text() const {
  switch (kind) {
    case Kind::kShared:
      return "[replay] shared memory " + in_quotes(name);
    case Kind::kFile:
      return "[replay] file " + in_quotes(name);
    default:
      return "[replay] private memory";
  }
}

std::string Storage::path() const {
  if (kind == Kind::kPrivate) throw Error("[replay] expected a name or a file, found private memory");
  if (name.empty()) throw Error("{}: expected a name, found none", text());
  if (name.find('\0') != std::string::npos) throw Error("{}: expected a name without a zero byte, found one", text());
  if (kind == Kind::kFile) return name;
  if (name.size() > kMaxSharedName || name.find('/') != std::string::npos) {
    throw Error("{}: expected a name of at most {} bytes without '/'", text(), kMaxSharedName);
  }
  return fmt::format("{}/quern-{}", kSharedFolder, name);
}

Memory Memory::create(const Storage& storage, uint64_t bytes, bool prefault) {
  Memory memory(storage);
  if (storage.kind == Storage::Kind::kPrivate) {
    if (prefault) expect_available(storage, bytes);
    memory.map_private(bytes);
  } else {
    if (access(storage.path().c_str(), F_OK) == 0) taken(storage);
    if (storage.kind == Storage::Kind::kShared) expect_available(storage, bytes);
    memory.open_unnamed();
    // Not ftruncate(): writing to a hole when the disk is full kills the writer with SIGBUS.
    const int code = posix_fallocate(memory.descriptor_, 0, static_cast<off_t>(bytes));
    if (code != 0) no_room(storage, bytes, reason(code));
    memory.file_bytes_ = bytes;
    memory.map_file();
  }
  if (prefault) memory.prefault();
  return memory;
}

void Memory::publish() {
  if (storage_.kind == Storage::Kind::kPrivate) return;
  const std::string from = temporary_.empty() ? fmt::format("/proc/self/fd/{}", descriptor_) : temporary_;
  const std::string to = storage_.path();
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    if (errno == EEXIST) taken(storage_);
    throw Error("{}: cannot give it this name: {}", storage_.text(), reason(errno));
  }
  if (temporary_.empty()) return;
  unlink(std::exchange(temporary_, {}).c_str());
  flock(descriptor_, LOCK_UN);
}

Memory Memory::open(const Storage& storage, double patience) {
  Memory memory(storage);
  const std::string path = storage.path();
  const double deadline = seconds_now() + patience;
  while (true) {
    memory.descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (memory.descriptor_ >= 0) break;
    if (errno == ELOOP) {
      throw Error("{}: expected a regular file, found a symbolic link; give the path of the file itself",
                  storage.text());
    }
    if (errno != ENOENT || seconds_now() >= deadline) throw Error("{}: cannot open: {}", storage.text(), reason(errno));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  struct stat status = {};
  if (fstat(memory.descriptor_, &status) != 0) throw Error("{}: cannot read: {}", storage.text(), reason(errno));
  expect_ours(storage, status);
  memory.file_bytes_ = static_cast<uint64_t>(status.st_size);
  return memory;
}

std::string Memory::head(uint64_t offset, uint64_t bytes) const {
  std::string text(bytes, '\0');
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(descriptor_, text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("{}: cannot read: {}", storage_.text(), reason(errno));
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  text.resize(done);
  return text;
}

void Memory::map(bool prefault) {
  map_file();
  if (prefault) this->prefault();
}

bool Memory::remove(const Storage& storage) {
  if (unlink(storage.path().c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  throw Error("{}: cannot remove: {}", storage.text(), reason(errno));
}

Memory::Memory(Memory&& other) noexcept
    : storage_(std::move(other.storage_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      file_bytes_(other.file_bytes_),
      private_(std::move(other.private_)),
      data_(std::exchange(other.data_, nullptr)),
      mapped_(other.mapped_),
      device_(other.device_),
      inode_(other.inode_),
      guard_(std::move(other.guard_)) {}

Memory::~Memory() {
  guard_ = MappingGuard();
  if (data_ != nullptr && private_.empty()) munmap(data_, mapped_);
  close_descriptor();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

// A child that has closed its inherited descriptors may have opened another file under that number; do not close that.
void Memory::close_descriptor() noexcept {
  struct stat status = {};
  const bool is_open = descriptor_ >= 0 && fstat(descriptor_, &status) == 0;
  const bool is_known = data_ == nullptr || (status.st_dev == device_ && status.st_ino == inode_);
  if (is_open && is_known) ::close(descriptor_);
}

void Memory::map_private(uint64_t bytes) {
  try {
    private_ = AlignedBuffer<std::byte>(bytes, Fill::kZero);
  } catch (const Error&) {
    no_room(storage_, bytes, reason(ENOMEM));
  }
  data_ = private_.data();
  mapped_ = bytes;
}

// An unnamed file cannot outlive the process by accident. Some file systems do not support unnamed files.
void Memory::open_unnamed() {
  const std::string folder = folder_of(storage_);
  descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode_of(storage_));
  if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) open_temporary();
  if (descriptor_ < 0) throw Error("{}: cannot create a file in {}: {}", storage_.text(), folder, reason(errno));
}

// Locked until publish(), so that the next process that creates a buffer of this name can recognise leftovers of killed
// processes. A file that is taken for a leftover before it is locked is created again.
void Memory::open_temporary() {
  const std::string path = storage_.path();
  remove_leftovers_of(path);
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    temporary_ = temporary_beside(path);
    descriptor_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode_of(storage_));
  } while (descriptor_ >= 0 && !lock_new_file(descriptor_, temporary_));
  if (descriptor_ < 0) temporary_.clear();
}

void Memory::map_file() {
  void* found = mmap(nullptr, file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (found == MAP_FAILED) no_room(storage_, file_bytes_, reason(errno));
  data_ = static_cast<std::byte*>(found);
  mapped_ = file_bytes_;
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0) throw Error("{}: cannot read: {}", storage_.text(), reason(errno));
  device_ = status.st_dev;
  inode_ = status.st_ino;
  guard_ = MappingGuard(data_, mapped_);
}

void Memory::lost() const {
  throw Error("{}: it was truncated while in use, or its disk has failed; remove it and create it again",
              storage_.text());
}

// The kernel zeroes a page when it is first touched, which is most of the cost, on the core that touches it. Not for
// files: every page would become dirty and be written to disk.
void Memory::prefault() const {
  if (storage_.kind == Storage::Kind::kFile) return;
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
  const uint64_t share = (mapped_ / threads + kHugePage) / kHugePage * kHugePage;
  const auto touch = [&](size_t thread) {
    const uint64_t begin = std::min(mapped_, thread * share);
    const uint64_t end = std::min(mapped_, begin + share);
    // Linux before 5.14 does not support it; pages are then allocated by the first add.
    static_cast<void>(madvise(data_ + begin, end - begin, MADV_POPULATE_WRITE));
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(touch, i);
  touch(0);
}

}  // namespace quern::replay
