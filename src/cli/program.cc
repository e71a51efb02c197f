#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "kernels/target.h"

namespace quern::cli {
namespace {

constexpr int kBadUsage = 2;

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "quern: %s\n", printable(message).c_str());
  return kBadUsage;
}

// An earlier write may have failed although the last one did not.
void check_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error("[output] standard output cannot be written: is the disk full?");
}

// If a standard stream is closed, the next file to be opened, such as metrics.jsonl, gets its descriptor, and console
// output would end up there. Occupies the descriptor with the wrong access mode, so that using it still fails.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));  // takes the lowest free number
  }
}

// An ignored SIGPIPE is inherited from the parent: `quern generate | head` would then run to the end with no reader.
void end_quietly_without_a_reader() { std::signal(SIGPIPE, SIG_DFL); }

}  // namespace

int run_program(const std::function<int()>& run) {
  reserve_standard_streams();
  end_quietly_without_a_reader();
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit becomes a write error with a message
  try {
    const int code = run();
    check_output();
    return code;
  } catch (const std::filesystem::filesystem_error& error) {  // what() has the path at its end, in brackets
    return fail(fmt::format("[files] {}: {}", error.path1().native(), error.code().message()));
  } catch (const std::bad_alloc&) {
    return fail("[memory] not enough memory for this model, batch or text");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

void use_requested_target() {
  try {
    kernels::select_target_from_environment();
  } catch (const Error& error) {
    throw Error("QUERN_TARGET: {}", error.what());
  }
}

}  // namespace quern::cli
