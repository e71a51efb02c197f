// One line that says what is going on, for people who wait.
#pragma once

#include <string_view>

namespace quern::cli {

// Writes to standard error, and only when that is a terminal: files and pipes never see it.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(std::string_view what);  // replaces what was shown
  void clear();                      // before writing anything else to the terminal

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace quern::cli
