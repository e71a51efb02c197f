// A status line on the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace quern::cli {

// Writes to standard error, and only if that is a terminal.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(std::string_view what);  // replaces the current status
  void clear();                      // call before writing anything else to the terminal

 private:
  bool terminal_;
  bool shown_ = false;
};

// The same for something that takes more than a second, such as "importing: 120 MB of 538 MB".
class LongProgress {
 public:
  // `text(done, total)` is the status.
  using Text = std::function<std::string(uint64_t done, uint64_t total)>;
  explicit LongProgress(Text text) : text_(std::move(text)) {}

  void show(uint64_t done, uint64_t total);  // does nothing in the first second, and at most five times per second
  void clear() { progress_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  Text text_;
  Clock::time_point begin_ = Clock::now(), last_ = {};
  Progress progress_;
};

}  // namespace quern::cli
