// Lines for people who watch a run. Whether they can be written decides nothing: a reader that went away, a full disk
// or a terminal that was closed must not end what runs for days.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace quern::report {

// Never throws for a failed write, which fmt::print() does, and never waits long for a reader; remembers the first
// loss. One thread at a time. SIGPIPE must be ignored where the stream may be a pipe.
class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}

  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }
  void write(std::string_view text) noexcept;
  void flush() noexcept;

  // Why something was lost: an errno, 0 when nothing was.
  int error() const noexcept { return error_; }

 private:
  static constexpr int kPatience = 1000;  // milliseconds

  bool is_ready() noexcept;
  void forget_failure() noexcept;

  std::FILE* file_;
  int error_ = 0;
  bool stalled_ = false;  // nobody took the last line
};

}  // namespace quern::report
