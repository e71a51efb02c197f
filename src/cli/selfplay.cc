// quern selfplay: learns a board game by playing against itself.
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/dashboard_option.h"
#include "cli/selfplay_actor.h"
#include "cli/training.h"
#include "core/error.h"
#include "learn/selfplay_run.h"

namespace quern::cli {
namespace {

struct Options {
  ConfigOptions config;
  TrainingOptions training{.command = "selfplay"};
  std::string game;
  bool asynchronous = false;
  bool print_config = false;
};

constexpr SettingFlag kFlags[] = {
    {"--steps", "train.steps", "Number of weight updates"},
    {"--batch", "train.batch", "Positions per update"},
    {"--rate", "optimizer.rate", "Learning rate"},
    {"--games", "selfplay.generation_games", "Games that are played with the same weights"},
    {"--simulations", "selfplay.simulations", "Simulations of a full search"},
    {"--processes", "selfplay.processes", "Actor processes instead of threads, for --asynchronous"},
    {"--seed", "train.seed", ""},
    {"--precision", "train.precision", "Storage format of matrices and activations: fp32, bf16 or fp16"},
    {"--threads", "train.threads", "Threads, 1 to 64 (default: all cores); does not affect the result"},
};

constexpr const char* kExamples = R"(Examples:
  quern selfplay tictactoe --run runs/ttt                       seconds
  quern selfplay connect4 --run runs/four                       half an hour to an hour on two cores
  quern selfplay --run runs/four --resume                       resume after an interruption
  quern selfplay --run runs/four --resume --steps 8000          extend a run
  quern selfplay connect4 --run runs/fast --asynchronous --processes 2
                                                                as fast as possible, with actor processes
  quern selfplay chess --run runs/chess --set selfplay.simulations=200
  quern selfplay connect4 --print-config                        every setting with its meaning

Then:
  quern play --run runs/four                                    play against it
  quern arena --run runs/four --against perfect                 measure its strength

Actors play games with the newest network; every move is chosen by a tree search that the network guides. Positions go
into a replay buffer, from which the learner trains the network to foresee the search's moves and the game's result.

By default a run is synchronous: weights are published after fixed numbers of games and steps, so that it has one
result, bit for bit, for any number of threads and interruptions. Ctrl-C stops it; the games since the last checkpoint,
at most one generation, are played again when it resumes. With --asynchronous, actors never wait for weights and the
result depends on timing.)";

learn::SelfplayOptions selfplay_options(const std::atomic<bool>& stop) {
  return {.stop = stop, .actor_command = {"/proc/self/exe", kActorCommand}};
}

void expect_game(const Options& options) {
  if (!options.game.empty()) return;
  throw Error("selfplay: expected GAME: tictactoe, connect4 or chess; run `quern selfplay --help`");
}

train::RunConfig new_settings(const Options& options) {
  expect_game(options);
  train::RunConfig defaults = train::selfplay_preset(options.game);
  if (options.asynchronous) defaults.selfplay.synchronous = false;
  return config_of(options.config, defaults);
}

train::RunConfig settings(const Options& options, const dist::Communicator* ranks) {
  if (ranks != nullptr && ranks->size() > 1) {
    throw Error("selfplay: expected one process, found {} started by mpirun; use --asynchronous --processes N",
                ranks->size());
  }
  if (!options.training.resume) expect_game(options);
  if (options.training.run.empty()) {
    throw Error("selfplay: expected --run DIR, the directory for the result; run `quern selfplay --help`");
  }
  if (!options.training.resume) return new_settings(options);
  if (!options.game.empty() || options.asynchronous) {
    throw Error("--resume continues a run with its own game; omit {}",
                options.game.empty() ? "--asynchronous" : options.game);
  }
  return config_to_resume(options.config, options.training.run);
}

int run_selfplay(Options& options) {
  if (options.print_config) {
    fmt::print("{}", train::to_toml(new_settings(options)));
    return 0;
  }
  options.training.start = [](const train::RunConfig& config, const std::filesystem::path& folder,
                              train::Observer& observer, const std::atomic<bool>& stop, dist::Communicator*) {
    return learn::start_selfplay(config, folder, observer, selfplay_options(stop));
  };
  options.training.resumed = [](const train::RunConfig& config, const std::filesystem::path& folder,
                                train::Observer& observer, const std::atomic<bool>& stop, dist::Communicator*) {
    return learn::resume_selfplay(config, folder, observer, selfplay_options(stop));
  };
  return run_training(options.training, [&](const dist::Communicator* ranks) { return settings(options, ranks); });
}

}  // namespace

Command add_selfplay(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("selfplay", "Learn a board game by self-play: tictactoe, connect4 or chess");
  command.add_word("GAME", options->game, "tictactoe, connect4 or chess");
  command.add_text("--run", options->training.run, "DIR", "Directory of the run");
  command.add_flag("--resume", options->training.resume, "Resume the run in --run");
  command.add_flag("--asynchronous", options->asynchronous, "Do not wait for games or weights; not reproducible");
  add_setting_flags(command, options->config, kFlags);
  command.add_flag("--print-config", options->print_config, "Print every setting with its meaning, and exit");
  add_dashboard_flag(command, options->training.dashboard);
  command.add_flag("--profile", options->training.profile, "Print a profile of the learner's time at the end");
  command.set_footer(kExamples);
  return {command, [options] { return run_selfplay(*options); }};
}

}  // namespace quern::cli
