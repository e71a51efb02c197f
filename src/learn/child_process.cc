#include "learn/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"

extern char** environ;

namespace quern::learn {
namespace {

constexpr double kPatience = 5;  // seconds
constexpr size_t kMaxLine = 4096;

[[noreturn]] void refuse(const std::string& program, int error) {
  throw Error("[selfplay] {}: cannot be started: {}", program, std::generic_category().message(error));
}

// Both ends are closed in other children.
std::array<int, 2> make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse(program, errno);
  return ends;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  if (command.empty()) throw Error("[selfplay] expected a program that plays, found none");
  const std::array<int, 2> in = make_pipe(command[0]), out = make_pipe(command[0]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = ::posix_spawnp(&pid_, command[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  output_ = out[0];
  if (error != 0) {
    pid_ = -1;
    close();
    refuse(command[0], error);
  }
  ::fcntl(output_, F_SETFL, O_NONBLOCK);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      text_(std::move(other.text_)),
      ended_(std::move(other.ended_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  ChildProcess old(std::move(other));  // in the end: what this one was
  std::swap(pid_, old.pid_);
  std::swap(input_, old.input_);
  std::swap(output_, old.output_);
  std::swap(text_, old.text_);
  std::swap(ended_, old.ended_);
  return *this;
}

ChildProcess::~ChildProcess() { close(); }

void ChildProcess::ask_to_end() noexcept {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

void ChildProcess::close() noexcept {
  ask_to_end();
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(kPatience);
  for (bool killed = false; pid_ > 0;) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) break;
    if (!killed && Clock::now() > deadline) killed = ::kill(pid_, SIGKILL) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
  if (output_ >= 0) ::close(std::exchange(output_, -1));
}

void ChildProcess::read_lines(const std::function<void(const std::string&)>& line) {
  std::array<char, 4096> block;
  for (ssize_t n; output_ >= 0 && (n = ::read(output_, block.data(), block.size())) > 0;) {
    for (const char c : std::string_view(block.data(), static_cast<size_t>(n))) {
      if (c == '\n') {
        line(text_);
        text_.clear();
      } else if (text_.size() < kMaxLine) {
        text_ += c;
      }
    }
  }
}

std::optional<std::string> ChildProcess::end() {
  if (pid_ < 0) return ended_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  ended_ = WIFSIGNALED(status) ? fmt::format("by signal {}", WTERMSIG(status))
                               : fmt::format("with exit code {}", WEXITSTATUS(status));
  return ended_;
}

}  // namespace quern::learn
