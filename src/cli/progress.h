// A status line on the terminal.
#pragma once

#include <string_view>

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

}  // namespace quern::cli
