// Tests of what a process leaves behind when its disk is full or it is killed: it has to be another process.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

namespace quern::test {

inline constexpr int kNotPermitted = 77;

// Starts a process that runs body(), which returns an exit code, and ends without the destructors of this one.
template <typename Body>
pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  _exit(code);
}

// The exit code of the child; 128 + n when it died from signal n.
inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <typename Body>
int run_in_child(Body body) {
  return wait_for(start_child(body));
}

// From here on no file of this process may grow beyond `bytes`: writes come back short, then with EFBIG.
inline void limit_file_size(size_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Puts a file system of `bytes` under `folder`, for this process alone. False where that takes more rights; any other
// failure is an exception, so that a test which skips itself does so for no other reason.
inline bool mount_tiny_disk(const std::filesystem::path& folder, size_t bytes) {
  if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      mount("tmpfs", folder.c_str(), "tmpfs", 0, ("size=" + std::to_string(bytes)).c_str()) == 0) {
    return true;
  }
  if (errno == EPERM || errno == EACCES) return false;
  throw std::system_error(errno, std::generic_category(), "cannot mount a small disk");
}

}  // namespace quern::test
