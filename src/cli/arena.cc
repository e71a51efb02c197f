// quern arena: measures the strength of a network that has learned a board game.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arena_match.h"
#include "cli/arena_mistakes.h"
#include "cli/commands.h"
#include "core/error.h"

namespace quern::cli {
namespace {

struct Options {
  std::vector<std::string> runs, more_runs;  // RUN, --run
  bool mistakes = false;
  bool all = false;
  std::string against;
  std::optional<uint64_t> games, opening_moves, positions;
  uint64_t simulations = 100;
  uint64_t seed = 1;
  size_t threads = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern arena runs/four --against random                a match against random moves
  quern arena runs/four --against runs/four@1000        against an earlier checkpoint, or another run
  quern arena runs/four --against perfect               against perfect play
  quern arena runs/four --against perfect --opening-moves 0 --simulations 400
  quern arena runs/four --mistakes                      how often it is wrong, judged by perfect play
  quern arena runs/four --mistakes --all                the same for every checkpoint that was kept
  quern arena runs/four@500 runs/four@5000 --mistakes --simulations 400
  quern arena runs/ttt --mistakes --json
  quern arena runs/chess --mistakes --positions 500     how many mates in one it misses

A match plays every opening twice, so that each player moves first once. Networks make the most visited move of their
search and draw no random numbers, so openings of random moves make their games differ. Perfect play needs a game that
is solved, tictactoe or connect4; it chooses at random among the moves that keep the result. Against it, a network
scores at most 50 % of the points of openings that are played from both sides. Openings of Connect Four have 8 moves
then; with --opening-moves 0 it is solved from the empty board, which takes minutes.

With --mistakes, a mistake is a move after which perfect play ends worse than before it: a win becomes a draw or a
loss, a draw a loss. The columns are the network alone (its most probable move), the search, and how often the network's
most likely result (win, draw, loss) is that of perfect play. Connect Four is tested with random positions, 8 to 14
(begin), 15 to 28 (middle) and 29 to 40 (end) moves after the start; tic-tac-toe with all of its positions. Chess is tested with
positions of random games in which a move mates: every other move is a mistake.

The result is the same for any number of threads.)";

void refuse_with(const char* mode, std::initializer_list<std::pair<const char*, bool>> flags) {
  for (const auto& [flag, given] : flags) {
    if (given) throw Error("arena: {}: expected no {}, found it", mode, flag);
  }
}

int count_mistakes(const Options& options, const std::vector<std::string>& runs) {
  refuse_with("--mistakes", {{"--against", !options.against.empty()},
                             {"--games", options.games.has_value()},
                             {"--opening-moves", options.opening_moves.has_value()}});
  return show_mistakes({.runs = runs,
                        .all = options.all,
                        .positions = options.positions,
                        .simulations = options.simulations,
                        .seed = options.seed,
                        .threads = options.threads,
                        .json = options.json});
}

int play_match(const Options& options, const std::vector<std::string>& runs) {
  refuse_with("--against", {{"--all", options.all}, {"--positions", options.positions.has_value()}});
  if (runs.size() != 1) {
    throw Error("arena: expected one run and --against RUN, random or perfect, found {} runs", runs.size());
  }
  MatchOptions match{.run = runs[0],
                     .against = options.against,
                     .simulations = options.simulations,
                     .opening_moves = options.opening_moves,
                     .seed = options.seed,
                     .threads = options.threads,
                     .json = options.json};
  if (options.games) match.games = *options.games;
  return show_match(match);
}

int run_arena(const Options& options) {
  std::vector<std::string> runs = options.runs;
  runs.insert(runs.end(), options.more_runs.begin(), options.more_runs.end());
  if (runs.empty()) {
    throw Error("arena: expected a run, as in `quern arena runs/four --against random`; run `quern arena --help`");
  }
  if (!options.mistakes && options.against.empty()) {
    throw Error("arena: expected --against RUN, random or perfect, or --mistakes; run `quern arena --help`");
  }
  return options.mistakes ? count_mistakes(options, runs) : play_match(options, runs);
}

}  // namespace

Command add_arena(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("arena", "Measure the strength of a network that has learned a board game");
  command.add_words("RUN", options->runs, "Run of `quern selfplay`, RUN@STEP, or the directory of a checkpoint");
  command.add_list("--run", options->more_runs, "RUN", "The same");
  command.add_text("--against", options->against, "PLAYER", "Play a match against a run, RUN@STEP, random or perfect");
  command.add_number("--games", options->games, "N", "Games of the match (default: 100)", {2, 1'000'000'000});
  command.add_number("--opening-moves", options->opening_moves, "N",
                     "Random moves of an opening (default: 1 to 4, by the game; random: 0; perfect: 0 or 8)", {0, 512});
  command.add_flag("--mistakes", options->mistakes, "Count wrong moves, judged by perfect play");
  command.add_flag("--all", options->all, "--mistakes: every checkpoint of each run");
  command.add_number("--positions", options->positions, "N",
                     "--mistakes: positions of each set of connect4 or chess (default: 1000)", {1, 100'000});
  command.add_number("--simulations", options->simulations, "N", "Simulations of a search; 0: the network alone",
                     {0, 1'000'000});
  command.add_number("--seed", options->seed, "N", "Random seed");
  command.add_threads(options->threads);
  command.add_flag("--json", options->json, "Print one JSON object");
  command.set_footer(kExamples);
  return {command, [options] { return run_arena(*options); }};
}

}  // namespace quern::cli
