// quern bench: runs quern-bench from this program's directory.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/commands.h"
#include "core/error.h"

namespace quern::cli {

bool names_bench(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "bench"; }

void list_bench(Parser root) {
  root.add_command("bench", "Run benchmarks and compare with hardware limits and other libraries");
}

int run_bench_program(char** argv) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "quern-bench";
  execv(program.c_str(), argv + 1);  // "bench" becomes its argv[0]
  if (errno == ENOENT) {
    throw Error("bench: expected the program {}, found none; build it with `make build`", program.native());
  }
  throw Error("bench: cannot start {}: {}", program.native(), std::generic_category().message(errno));
}

}  // namespace quern::cli
