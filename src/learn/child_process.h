// A child process whose standard input is held open, and whose standard output is read line by line.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace quern::learn {

// Move-only. The destructor closes the standard input, which asks the process to end, and kills it if it has not ended
// after five seconds.
class ChildProcess {
 public:
  // `command`: the program's path, or its name to be found in PATH, and its arguments. It has a process group of its
  // own, so that Ctrl-C does not reach it. Error if it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  // Calls line(text) for each complete line that has arrived. Does not wait.
  void read_lines(const std::function<void(const std::string&)>& line);
  // How it ended, "with exit code 2" or "by signal 9"; nullopt while it runs. Does not wait.
  std::optional<std::string> end();
  // Closes its standard input.
  void ask_to_end() noexcept;
  pid_t pid() const noexcept { return pid_; }

 private:
  void close() noexcept;

  pid_t pid_ = -1;  // -1: has ended
  int input_ = -1, output_ = -1;
  std::string text_;  // the beginning of a line
  std::string ended_;
};

}  // namespace quern::learn
