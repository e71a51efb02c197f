#include "cli/training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "cli/dashboard_option.h"
#include "cli/run_folder.h"
#include "cli/stop_signals.h"
#include "cli/version.h"
#include "core/error.h"
#include "core/host_name.h"
#include "core/mapped_file.h"
#include "core/quick_hash.h"
#include "core/text.h"
#include "dist/connect.h"
#include "dist/cores.h"
#include "kernels/target.h"
#include "report/console.h"
#include "report/machine.h"
#include "report/profiler.h"
#include "report/run_files.h"
#include "run/observers.h"
#include "run/run_ranks.h"
#include "train/plan.h"

namespace quern::cli {
namespace {

constexpr int kFailed = 2, kInterrupted = 130;

// Measures the limits again, more precisely than for the progress line, which must not delay the first step.
void finish_profile(report::Profiler& profiler, size_t threads, double peak, report::Output& out) {
  const report::Machine machine = report::measure_machine(threads);
  profiler.finish(std::max(peak, machine.fma_peak_gflops), machine.copy_gbs, out);
}

std::string where_it_is(const train::RunResult& result, const TrainingOptions& options, const RunFolder& folder) {
  const std::string run = folder.path().string();
  if (!result.prepared) return "stopped while the data was being prepared; nothing was written";
  if (!result.resumed) {
    return fmt::format("finished: {} of {} steps, in {}; extend it with --steps N", result.step, result.step, run);
  }
  if (folder.temporary()) return fmt::format("done: {} steps; profiling only, nothing was saved", result.step);
  if (result.finished) return fmt::format("done: {} steps, in {}", result.step, run);
  if (result.step == 0) {
    return fmt::format("stopped before the first step; start it with `quern {} --run {} --resume`", options.command,
                       run);
  }
  return fmt::format("stopped after step {} and saved; resume with `quern {} --run {} --resume`", result.step,
                     options.command, run);
}

// Prints the last line, also on standard error if standard output could not be written.
void say_where_it_is(const std::string& line, report::Output& out) {
  out.print("{}\n", line);
  out.flush();
  if (out.error() == 0) return;
  const std::string reason = std::generic_category().message(out.error());
  report::Output(stderr).print("quern: standard output could not be written ({}); {}\n", reason, line);
}

// As it was typed, without its quotation marks.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

// Of the file that is running, so that builds of the same version differ too.
uint64_t program_hash() {
  const MappedFile file("/proc/self/exe");
  return quick_hash(file.bytes());
}

const RunFunction& run_function(const TrainingOptions& options) {
  return options.resume ? options.resumed : options.start;
}

// A rank that says nothing and writes nothing.
int follow(const TrainingOptions& options, const train::RunConfig& config, dist::Communicator& ranks) {
  train::Observer quiet;
  run_function(options)(config, options.run, quiet, stop_on_signals(), &ranks);
  return 0;
}

int lead(const TrainingOptions& options, const train::RunConfig& config, dist::Communicator* ranks) {
  const std::atomic<bool>& stop = stop_on_signals();
  const RunFolder folder(options.run);
  const size_t threads = train::thread_count(config);
  const double others = ranks == nullptr ? 1.0 : static_cast<double>(ranks->size());  // as fast as this one
  const double peak = others * report::quick_fma_peak_gflops(threads);
  report::Console console(
      {.out = stdout,
       .terminal = ranks == nullptr && isatty(STDOUT_FILENO) != 0,  // mpirun's is one even if its output is a file
       .interval = std::max<uint64_t>(1, config.log.interval),
       .peak_gflops = peak,
       .measure_peak = [threads, others] { return others * report::quick_fma_peak_gflops(threads); },
       .config = &config});
  std::optional<dashboard::DashboardThread> dashboard;
  if (options.dashboard) {
    dashboard::DashboardOptions watched = dashboard_options("127.0.0.1", *options.dashboard);
    watched.runs = {folder.path()};
    watched.expected = true;
    dashboard.emplace(watched);
    announce(dashboard->dashboard(), "127.0.0.1", *options.dashboard, console.out());
  }
  const bool profiled = options.profile || !options.trace.empty();
  report::RunFiles files(folder.path(), config,
                         {.command = command_line(),
                          .version = version(),
                          .commit = commit(),
                          .peak_gflops = [&console] { return console.peak_gflops(); },
                          .operations = !profiled});
  report::Profiler profiler({.table = options.profile, .trace = options.trace});
  train::Observers observers{&console, &files, &profiler};
  const train::RunResult result = run_function(options)(config, folder.path(), observers, stop, ranks);
  console.finish();
  if (profiler.wanted() && result.resumed) finish_profile(profiler, threads, peak, console.out());
  say_where_it_is(where_it_is(result, options, folder), console.out());
  return result.prepared ? 0 : kInterrupted;
}

// An error that one rank has is reported by it, and ends all. One that all have is reported by the first.
int run_ranks(const TrainingOptions& options, const Settings& settings, std::unique_ptr<dist::Communicator> ranks) try {
  dist::claim_cores(*ranks);
  const train::RunRanks all(ranks.get());
  all.check_same("program", fmt::format("{}, file {:016x}", version_line(), program_hash()));
  // Vectors of any width give the same bits, but only with fused multiply-add.
  const kernels::Target target = kernels::current_target();
  all.check_same("CPU",
                 target.fma ? "with fused multiply-add" : fmt::format("{}, without fused multiply-add", target.name));
  all.check_same("command", fmt::format("{} {} --resume", options.command, options.resume ? "with" : "without"));
  train::RunConfig config;
  all.agree([&] { config = settings(ranks.get()); });
  return ranks->rank() == 0 ? lead(options, config, ranks.get()) : follow(options, config, *ranks);
} catch (const train::AgreedError& error) {
  std::fflush(stdout);
  if (ranks->rank() == 0) report::Output(stderr).print("quern: {}\n", printable(error.what()));
  train::RunRanks(ranks.get()).meet();  // mpirun kills the others as soon as one has failed
  return kFailed;
} catch (const std::exception& error) {
  std::fflush(stdout);
  report::Output(stderr).print("quern: rank {} on {}: {}\n", ranks->rank(), host_name(), printable(error.what()));
  ranks->abort();
  ranks.reset();  // ends this process
  return kFailed;
}

}  // namespace

int run_training(const TrainingOptions& options, const Settings& settings) {
  std::unique_ptr<dist::Communicator> ranks = dist::connect();
  return ranks == nullptr ? lead(options, settings(nullptr), nullptr) : run_ranks(options, settings, std::move(ranks));
}

int show_training(const train::RunConfig& config) {
  const size_t threads = train::thread_count(config);
  report::Console console({.out = stdout,
                           .terminal = isatty(STDOUT_FILENO) != 0,
                           .peak_gflops = report::quick_fma_peak_gflops(threads),
                           .config = &config});
  train::preview_run(config, console, stop_on_signals());
  console.finish();
  console.out().print("nothing was written\n");
  return 0;
}

}  // namespace quern::cli
