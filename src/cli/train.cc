// quern train: text in, a model out.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/text.h"
#include "report/console.h"
#include "report/metrics.h"
#include "train/observers.h"
#include "train/run.h"
#include "train/trainer.h"

namespace quern::cli {
namespace {

// A setting that came by its own flag.
struct FlagSetting {
  std::string place;    // "--steps 500"
  std::string setting;  // "train.steps=500"
};

struct Options {
  std::vector<std::string> data;
  std::string run;
  std::string preset = "tiny";
  std::string config_file;
  std::vector<std::string> settings;
  std::vector<FlagSetting> flags;
  std::optional<uint64_t> threads;  // does not change the result, so --resume takes it too
  bool resume = false;
  bool print_config = false;
};

// The settings that people change most have flags of their own.
struct Flag {
  const char* name;
  const char* setting;
};
constexpr Flag kFlags[] = {{"--steps", "train.steps"},
                           {"--batch", "train.batch"},
                           {"--seed", "train.seed"},
                           {"--layers", "model.layers"},
                           {"--heads", "model.heads"},
                           {"--width", "model.width"},
                           {"--context", "model.context"},
                           {"--dropout", "model.dropout"},
                           {"--rate", "optimizer.rate"},
                           {"--tokenizer", "data.tokenizer"},
                           {"--accumulation", "train.accumulation"}};

constexpr const char* kExamples = R"(Examples:
  quern train --run runs/first                            learn to write small stories
  quern train book.txt --run runs/book --preset small     learn from a text of your own
  quern train --run runs/first --resume                   go on after an interruption
  quern train --preset small --print-config > my.toml     every setting, explained
  quern train --config my.toml --steps 500 --set checkpoint.keep=5 --run runs/mine

--print-config explains every setting. The preset comes first, then --config, --set, and the flags of single settings.

Ctrl-C saves and stops; --resume goes on to the same result, bit for bit. A second Ctrl-C stops at once.)";

std::atomic<bool> stop_requested{false};

void on_interrupt(int) {
  if (stop_requested.exchange(true)) _exit(130);
}

train::RunConfig config_of(const Options& options) {
  train::RunConfig config = train::preset(options.preset);
  if (!options.config_file.empty()) train::apply_toml_file(config, options.config_file);
  for (const std::string& setting : options.settings) train::apply_setting(config, setting);
  for (const FlagSetting& flag : options.flags) train::apply_setting(config, flag.setting, flag.place);
  if (!options.data.empty()) config.data.paths = options.data;
  if (options.threads) config.train.threads = *options.threads;
  train::validate(config);
  // Whole paths, so that the run can be resumed from any folder.
  for (std::string& path : config.data.paths) path = std::filesystem::absolute(path).lexically_normal().string();
  return config;
}

void check_resume(const Options& options) {
  if (options.data.empty() && options.config_file.empty() && options.settings.empty() && options.flags.empty()) return;
  throw Error("--resume goes on with the run as it was configured; leave out DATA and all settings but --threads");
}

int run_train(const Options& options) {
  if (options.print_config) {
    fmt::print("{}", train::to_toml(config_of(options)));
    return 0;
  }
  if (options.run.empty())
    throw Error("train: expected --run DIR, the folder for the result; run `quern train --help`");
  if (options.resume) check_resume(options);
  train::RunConfig config = options.resume ? train::read_config(options.run) : config_of(options);
  if (options.threads) config.train.threads = *options.threads;
  report::Console console({.out = stdout,
                           .terminal = isatty(STDOUT_FILENO) != 0,
                           .interval = std::max<uint64_t>(1, config.log.interval),
                           .peak_gflops = bench::measure_machine(train::thread_count(config), true).fma_peak_gflops});
  report::Metrics metrics(std::filesystem::path(options.run) / "metrics.jsonl", config.log.interval);
  train::Observers observers{&console, &metrics};
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  const train::RunResult result = options.resume
                                      ? train::resume_run(options.run, observers, stop_requested, options.threads)
                                      : train::start_run(config, options.run, observers, stop_requested);
  console.finish();
  if (result.finished) {
    fmt::print("done: {} steps, in {}\n", result.step, options.run);
  } else if (result.step == 0) {
    fmt::print("stopped before the first step; start with `quern train --run {} --resume`\n", options.run);
  } else {
    fmt::print("stopped after step {} and saved; go on with `quern train --run {} --resume`\n", result.step,
               options.run);
  }
  return 0;
}

}  // namespace

Command add_train(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* train = app.add_subcommand("train", "Train a model on text; on small stories when none is given");
  train->add_option("DATA", options->data, "Text files, folders, .jsonl files or token shards (.bin)");
  train->add_option("--run", options->run, "The folder of the run")->type_name("DIR");
  train->add_option("--preset", options->preset, "Sizes and settings to start from: tiny, small or gpt2")
      ->type_name("NAME")
      ->capture_default_str();
  train->add_option("--config", options->config_file, "Settings in TOML, over those of the preset")->type_name("FILE");
  train->add_option("--set", options->settings, "One setting, over the others; may be repeated")
      ->type_name("TABLE.NAME=VALUE")
      ->allow_extra_args(false);  // one value after each; the next word may be DATA
  for (const Flag& flag : kFlags) {
    const auto add = [options, &flag](const std::string& value) {
      options->flags.push_back(
          {fmt::format("{} {}", flag.name, in_quotes(value)), std::string(flag.setting) + "=" + value});
    };
    train->add_option_function<std::string>(flag.name, add, fmt::format("--set {}=VALUE", flag.setting))
        ->type_name("VALUE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  train
      ->add_option("--threads", options->threads,
                   fmt::format("Worker threads, 1 to {}; the result does not depend on them", train::kMostThreads))
      ->check(CLI::Range(uint64_t{1}, uint64_t{train::kMostThreads}).description(""))
      ->type_name("N")
      ->default_str("every core");
  train->add_flag("--resume", options->resume, "Go on with the run in --run");
  train->add_flag("--print-config", options->print_config, "Print every setting with its meaning, and stop");
  train->footer(kExamples);
  return {train, [options] { return run_train(*options); }};
}

}  // namespace quern::cli
