// Lines that an engine sends to a graphical interface, from any thread.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace quern::cli {

class UciOutput {
 public:
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    fmt::print("{}\n", line);
    std::fflush(stdout);  // the reader waits for it
  }

  std::mutex mutex_;
};

}  // namespace quern::cli
