// quern: the command line program. Parses, hands over to a command, turns every failure into one line.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/version.h"
#include "cli/whole_number.h"
#include "core/cpu_info.h"
#include "core/error.h"
#include "kernels/target.h"
#include "train/workers.h"

namespace quern::cli {

using train::kMostThreads;

void add_threads_option(CLI::App& command, size_t& threads) {
  threads = std::min(cpu_info().usable_cores, kMostThreads);
  command.add_option("--threads", threads, fmt::format("Worker threads, 1 to {}", kMostThreads))
      ->transform(whole_number(size_t{1}, kMostThreads))
      ->type_name("N")
      ->capture_default_str();
}

namespace {

constexpr int kBadUsage = 2;

constexpr const char* kExamples = R"(Examples:
  quern train --run runs/first      learn to write small stories
  quern generate --run runs/first   let it write one
  quern eval --run runs/first       how well it predicts text that it has not seen
  quern report --run runs/first     how it went, with the loss curve
  quern plan --preset gpt2          how much memory training would take
  quern replay-step runs/first/incidents/step-00000042
                                    repeat a step that went wrong
  quern info                        what this machine can do
  quern bench --list                the workloads
  quern bench kernels --filter gemm compare matrix products with OpenBLAS

QUERN_TARGET=scalar|sse4|avx2|avx3 in the environment forces a vector target.)";

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "quern: %s\n", printable(message).c_str());
  return kBadUsage;
}

// The deepest command that was recognised, as the user would type it: "quern bench kernels".
std::string command_line_of(const CLI::App& app) {
  std::string line = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    line += " " + at->get_name();
  }
  return line;
}

// An earlier write may have failed although the last one did not.
void check_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error("[output] standard output cannot be written: is the disk full?");
}

int run_chosen(const std::vector<Command>& commands) {
  try {
    kernels::select_target_from_environment();
  } catch (const Error& error) {
    throw Error("QUERN_TARGET: {}", error.what());
  }
  for (const Command& command : commands) {
    if (!command.parser->parsed()) continue;
    const int code = command.run();
    check_output();
    return code;
  }
  throw Error(
      "expected a command: train, generate, eval, report, replay-step, tokenize, plan, info or bench; "
      "run `quern --help`");
}

int run(int argc, char** argv) {
  CLI::App app("Trains small transformers on CPUs, with results that can be reproduced to the last bit.", "quern");
  app.set_version_flag("--version", version_line());
  app.require_subcommand(0, 1);  // none is told apart from an unknown one below
  app.footer(kExamples);
  const std::vector<Command> commands = {add_train(app),  add_generate(app),    add_eval(app),
                                         add_report(app), add_replay_step(app), add_tokenize(app),
                                         add_plan(app),   add_info(app),        add_bench(app)};
  try {
    app.parse(argc, argv);
    return run_chosen(commands);
  } catch (const CLI::Success& asked) {  // --help, --version
    const int code = app.exit(asked);
    std::cout.flush();
    check_output();
    return code;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining(true);
    const std::string found = extras.empty() ? std::string() : extras.front();
    return fail(fmt::format("unknown {} '{}'; run `{} --help`", found.starts_with('-') ? "flag" : "command", found,
                            command_line_of(app)));
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{}; run `{} --help`", error.what(), command_line_of(app)));
  }
}

// A standard stream that is closed leaves its number to the next file that is opened, such as metrics.jsonl, and what
// is printed would land there. Opened the wrong way round, so that using it fails as it did when it was closed.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));  // takes the lowest free number
  }
}

// Where a parent ignores SIGPIPE, so would we: `quern generate | head` would then compute to the end for nobody.
void end_quietly_when_nobody_reads() { std::signal(SIGPIPE, SIG_DFL); }

}  // namespace
}  // namespace quern::cli

int main(int argc, char** argv) {
  quern::cli::reserve_standard_streams();
  quern::cli::end_quietly_when_nobody_reads();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is then an error that can be told
  try {
    return quern::cli::run(argc, argv);
  } catch (const std::filesystem::filesystem_error& error) {  // its own text has the path at the end, in brackets
    return quern::cli::fail(fmt::format("[files] {}: {}", error.path1().native(), error.code().message()));
  } catch (const std::bad_alloc&) {
    return quern::cli::fail("[memory] not enough of it for this model, batch or text");
  } catch (const std::exception& error) {
    return quern::cli::fail(error.what());
  }
}
