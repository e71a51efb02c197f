#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/clock.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "replay/buffer.h"

namespace quern::replay {
namespace {

constexpr double kPatience = 60;  // seconds; the kernel provides 1 to 4 GB of memory per second

// Held by the process that creates a buffer, so that others do not allocate as much memory, only to find that the name
// is taken. An abstract socket address: one process has it at a time, and the kernel releases it however the process
// ends. Nothing depends on it but memory: the name of a buffer is taken by a single system call.
class CreationLock {
 public:
  explicit CreationLock(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (socket_ < 0) return;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("quern-replay-{}-{:08x}-{}", geteuid(), crc32c(path), path.size());
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // after a zero byte: not a name of a file
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    held_ = bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  }
  CreationLock(const CreationLock&) = delete;
  CreationLock& operator=(const CreationLock&) = delete;
  ~CreationLock() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool held() const noexcept { return held_; }

 private:
  int socket_;
  bool held_ = false;
};

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

template <typename T>
void expect_option(const Storage& storage, const char* what, const T& expected, const T& found) {
  if (expected == found) return;
  throw Error("{}: exists with other options: {}: expected {}, found {}; ask for the same, attach to it, or remove it",
              storage.text(), what, expected, found);
}

void expect_same(const Storage& storage, const BufferOptions& expected, const BufferOptions& found) {
  expect_option(storage, "capacity", expected.capacity, found.capacity);
  expect_option(storage, "prioritised", expected.prioritised, found.prioritised);
  if (expected.prioritised) expect_option(storage, "alpha", expected.alpha, found.alpha);
  expect_option(storage, "samples_per_insert", expected.limit.samples_per_insert, found.limit.samples_per_insert);
  expect_option(storage, "min_size", expected.limit.minimum, found.limit.minimum);
  expect_option(storage, "slack", expected.limit.slack, found.limit.slack);
  expect_option(storage, "terminal", expected.terminal, found.terminal);
  expect_option(storage, "truncated", expected.truncated, found.truncated);
}

// What `make` returns; nullopt if it fails and the name now exists (`there`), or no longer does.
template <typename Make>
std::optional<ReplayBuffer> unless_changed(const std::string& path, bool there, Make make) {
  try {
    return make();
  } catch (const Error&) {
    if (exists(path) != there) throw;
    return std::nullopt;
  }
}

}  // namespace

ReplayBuffer ReplayBuffer::open_or_create(const Schema& schema, const BufferOptions& options, const Storage& storage) {
  const std::string path = storage.path();
  const double deadline = seconds_now() + kPatience;
  while (true) {
    if (exists(path)) {
      std::optional<ReplayBuffer> buffer = unless_changed(path, false, [&] { return attach(storage); });
      if (!buffer) continue;
      schema.expect_same(buffer->schema(), storage.text());
      expect_same(storage, options, buffer->options());
      return std::move(*buffer);
    }
    const CreationLock lock(path);
    if (!lock.held() && seconds_now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    std::optional<ReplayBuffer> buffer = unless_changed(path, true, [&] { return create(schema, options, storage); });
    if (buffer) return std::move(*buffer);
  }
}

}  // namespace quern::replay
