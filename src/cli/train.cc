// quern train: trains a model on text.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/dashboard_option.h"
#include "cli/training.h"
#include "core/error.h"

namespace quern::cli {
namespace {

struct Options {
  ConfigOptions config;
  TrainingOptions training{.command = "train"};
  bool print_config = false;
};

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
  quern train --run runs/seen --dashboard                 watch it in a browser; the address is printed
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

train::RunConfig settings(const Options& options, const dist::Communicator* ranks) {
  const std::string& run = options.training.run;
  const bool resume = options.training.resume;
  train::RunConfig config = resume ? train::RunConfig{} : config_of(options.config);
  const bool profiled = options.training.profile || !options.training.trace.empty();
  if (run.empty() && (resume || !profiled || ranks != nullptr)) {
    throw Error("train: expected --run DIR, the directory for the result; run `quern train --help`");
  }
  return resume ? config_to_resume(options.config, run) : config;
}

int run_train(const Options& options) {
  if (options.print_config) {
    fmt::print("{}", train::to_toml(config_of(options.config)));
    return 0;
  }
  return run_training(options.training, [&](const dist::Communicator* ranks) { return settings(options, ranks); });
}

}  // namespace

Command add_train(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser train = root.add_command("train", "Train a model on text (default: generated short stories)");
  add_config_options(train, options->config);
  train.add_text("--run", options->training.run, "DIR", "Directory of the run");
  train.add_flag("--resume", options->training.resume, "Resume the run in --run, with the settings given from here on");
  train.add_text("--from", options->config.from, "RUN",
                 "Start a new run from the weights of another, or of a checkpoint");
  train.add_flag("--print-config", options->print_config, "Print every setting with its meaning, and exit");
  add_dashboard_flag(train, options->training.dashboard);
  train.add_flag("--profile", options->training.profile, "Print a profile of the workers' time at the end");
  train.add_text("--trace", options->training.trace, "FILE", "Write a Chrome trace of the last steps");
  train.set_footer(kExamples);
  return {train, [options] { return run_train(*options); }};
}

}  // namespace quern::cli
