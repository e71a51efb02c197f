// Console output of a run. Write failures are not fatal: a reader that exited, a full disk or a closed terminal must
// not end a run of several days.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace quern::report {

// Unlike fmt::print(), never throws if a write fails. Never waits long for a reader. Remembers the first failure. Not
// thread-safe. SIGPIPE must be ignored if the stream may be a pipe.
class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}

  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }
  void write(std::string_view text) noexcept;
  void flush() noexcept;

  // The errno of the first failure; 0 if there was none.
  int error() const noexcept { return error_; }

 private:
  static constexpr int kPatience = 1000;  // milliseconds

  bool is_ready() noexcept;
  void forget_failure() noexcept;

  std::FILE* file_;
  int error_ = 0;
  bool stalled_ = false;  // the reader did not accept the last line
};

}  // namespace quern::report
