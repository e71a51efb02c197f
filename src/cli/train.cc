// quern train: trains a model on text.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "cli/commands.h"
#include "cli/config_options.h"
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
#include "run/run.h"
#include "run/run_ranks.h"
#include "train/plan.h"

namespace quern::cli {
namespace {

struct Options {
  ConfigOptions config;
  std::string run;
  bool resume = false;
  bool print_config = false;
  bool profile = false;
  std::string trace;
};

constexpr int kFailed = 2, kInterrupted = 130;

constexpr const char* kExamples = R"(Examples:
  quern train --run runs/first                            train on generated short stories
  quern train book.txt --run runs/book --preset small     train on your own text
  quern train --run runs/first --resume                   resume after an interruption
  quern train --run runs/first --resume --steps 2000 --rate 5e-4
                                                          extend a run, with other settings from here on
  quern train --from runs/first book.txt --run runs/tuned --steps 200 --rate 1e-4
                                                          start from the weights of another run
  quern train texts/ --run runs/big --set data.sampling=stream
                                                          tokenize while training, for text of any size
  mpirun -n 4 quern train book.txt --run runs/book --preset small
                                                          train with 4 processes, on one machine or several
  quern train --preset small --print-config > my.toml     write all settings with explanations
  quern train --config my.toml --steps 500 --set checkpoint.keep=5 --run runs/mine
  quern train --run runs/seen --set log.tensorboard=true --set log.histogram_interval=100
                                                          then: tensorboard --logdir runs
  quern train book.txt --run runs/safe --set diagnostics.spike_z=6 --set diagnostics.policy=rollback
                                                          roll back when the loss spikes
  quern train --preset small --memory 300M --run runs/lean   use the fastest plan within a memory limit
  quern train --preset small --steps 50 --profile            profile against the hardware's limits
  quern train --preset small --steps 50 --trace trace.json   write a timeline for https://ui.perfetto.dev

With --profile or --trace but without --run, the run uses a temporary directory that is removed at the end.
--print-config explains every setting. Later sources override earlier ones: --preset, --config, --set, then the flags
of single settings.

Ctrl-C, SIGTERM and a closed terminal (SIGHUP) save and stop the run; with --resume, the result is bit-identical to an
uninterrupted run. A second Ctrl-C stops immediately, without saving.

Settings and DATA given with --resume are in force from the next step on, and recorded in the [[history]] of the run's
config.toml: same history, same weights. DATA must be the same text in another place. The model's sizes, the tokenizer,
the seed and the sampling of a run cannot change. --from RUN starts at the newest checkpoint of a run, --from RUN@best at
the one with the lowest validation loss, --from RUN@STEP at that step; settings that are not given are those of RUN.

The directory of a new run must be empty or not exist. Only one process can train in it at a time; others may read it
meanwhile. A failure to write console output (`| head`, a full disk) never stops a run.

Exit codes: 0 if the run finished, or stopped and was saved, even if console output failed; 2 for an error;
130 if it stopped immediately, or before there was anything to save.)";

// Measures the limits again, more precisely than for the progress line, which must not delay the first step.
void finish_profile(report::Profiler& profiler, size_t threads, double peak, report::Output& out) {
  const report::Machine machine = report::measure_machine(threads);
  profiler.finish(std::max(peak, machine.fma_peak_gflops), machine.copy_gbs, out);
}

std::string where_it_is(const train::RunResult& result, const RunFolder& folder) {
  const std::string run = folder.path().string();
  if (!result.prepared) return "stopped while the data was being prepared; nothing was written";
  if (!result.resumed) {
    return fmt::format("finished: {} of {} steps, in {}; extend it with --steps N", result.step, result.step, run);
  }
  if (folder.temporary()) return fmt::format("done: {} steps; profiling only, nothing was saved", result.step);
  if (result.finished) return fmt::format("done: {} steps, in {}", result.step, run);
  if (result.step == 0) {
    return fmt::format("stopped before the first step; start it with `quern train --run {} --resume`", run);
  }
  return fmt::format("stopped after step {} and saved; resume with `quern train --run {} --resume`", result.step, run);
}

// Prints the last line, also on standard error if standard output could not be written.
void say_where_it_is(const std::string& line, report::Output& out) {
  out.print("{}\n", line);
  out.flush();
  if (out.error() == 0) return;
  const std::string reason = std::generic_category().message(out.error());
  report::Output(stderr).print("quern: standard output could not be written ({}); {}\n", reason, line);
}

train::RunConfig settings(const Options& options, const dist::Communicator* ranks) {
  train::RunConfig config = options.resume ? train::RunConfig{} : config_of(options.config);
  const bool profiled = options.profile || !options.trace.empty();
  if (options.run.empty() && (options.resume || !profiled || ranks != nullptr)) {
    throw Error("train: expected --run DIR, the directory for the result; run `quern train --help`");
  }
  return options.resume ? config_to_resume(options.config, options.run) : config;
}

// Of the file that is running, so that builds of the same version differ too.
uint64_t program_hash() {
  const MappedFile file("/proc/self/exe");
  return quick_hash(file.bytes());
}

auto run_function(const Options& options) { return options.resume ? train::resume_run : train::start_run; }

// A rank that says nothing and writes nothing.
int follow(const Options& options, const train::RunConfig& config, dist::Communicator& ranks) {
  train::Observer quiet;
  run_function(options)(config, options.run, quiet, stop_on_signals(), &ranks);
  return 0;
}

int lead(const Options& options, const train::RunConfig& config, dist::Communicator* ranks) {
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
  report::RunFiles files(folder.path(), config);
  report::Profiler profiler({.table = options.profile, .trace = options.trace});
  train::Observers observers{&console, &files, &profiler};
  const train::RunResult result = run_function(options)(config, folder.path(), observers, stop, ranks);
  console.finish();
  if (profiler.wanted() && result.resumed) finish_profile(profiler, threads, peak, console.out());
  say_where_it_is(where_it_is(result, folder), console.out());
  return result.prepared ? 0 : kInterrupted;
}

// An error that one rank has is reported by it, and ends all. One that all have is reported by the first.
int run_ranks(const Options& options, std::unique_ptr<dist::Communicator> ranks) try {
  dist::claim_cores(*ranks);
  const train::RunRanks all(ranks.get());
  all.check_same("program", fmt::format("{}, file {:016x}", version_line(), program_hash()));
  // Vectors of any width give the same bits, but only with fused multiply-add.
  const kernels::Target target = kernels::current_target();
  all.check_same("CPU",
                 target.fma ? "with fused multiply-add" : fmt::format("{}, without fused multiply-add", target.name));
  all.check_same("command", options.resume ? "train --resume" : "train without --resume");
  train::RunConfig config;
  all.agree([&] { config = settings(options, ranks.get()); });
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

int run_train(const Options& options) {
  if (options.print_config) {
    fmt::print("{}", train::to_toml(config_of(options.config)));
    return 0;
  }
  std::unique_ptr<dist::Communicator> ranks = dist::connect();
  return ranks == nullptr ? lead(options, settings(options, nullptr), nullptr) : run_ranks(options, std::move(ranks));
}

}  // namespace

Command add_train(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser train = root.add_command("train", "Train a model on text (default: generated short stories)");
  add_config_options(train, options->config);
  train.add_text("--run", options->run, "DIR", "Directory of the run");
  train.add_flag("--resume", options->resume, "Resume the run in --run, with the settings given from here on");
  train.add_text("--from", options->config.from, "RUN",
                 "Start a new run from the weights of another, or of a checkpoint");
  train.add_flag("--print-config", options->print_config, "Print every setting with its meaning, and exit");
  train.add_flag("--profile", options->profile, "Print a profile of the workers' time at the end");
  train.add_text("--trace", options->trace, "FILE", "Write a Chrome trace of the last steps");
  train.set_footer(kExamples);
  return {train, [options] { return run_train(*options); }};
}

}  // namespace quern::cli
