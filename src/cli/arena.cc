// quern arena: measures the strength of a network that has learned a board game.
#include <memory>
#include <string>
#include <vector>

#include "cli/arena_mistakes.h"
#include "cli/commands.h"
#include "core/error.h"

namespace quern::cli {
namespace {

struct Options {
  std::vector<std::string> words, flags;  // runs
  MistakesOptions mistakes;
  bool count_mistakes = false;
};

constexpr const char* kExamples = R"(Examples:
  quern arena runs/four --mistakes                      how often it is wrong, judged by perfect play
  quern arena runs/four --mistakes --all                the same for every checkpoint that was kept
  quern arena runs/four@500 runs/four@5000 --mistakes --simulations 400
  quern arena runs/ttt --mistakes --json

--mistakes needs a game that is solved, tictactoe or connect4. A mistake is a move after which perfect play ends worse
than before it: a win becomes a draw or a loss, a draw a loss. The columns are the network alone (its most probable
move), the search, and how often the network's most likely result (win, draw, loss) is that of perfect play. Connect
Four is tested with random positions, 8 to 14 (begin), 15 to 28 (middle) and 29 to 40 (end) moves after the start,
the same ones for one seed; tic-tac-toe with all of its positions.)";

int run_arena(Options& options) {
  options.mistakes.runs = options.words;
  options.mistakes.runs.insert(options.mistakes.runs.end(), options.flags.begin(), options.flags.end());
  if (options.mistakes.runs.empty()) {
    throw Error("arena: expected a run, as in `quern arena runs/four --mistakes`; run `quern arena --help`");
  }
  if (!options.count_mistakes) throw Error("arena: expected --mistakes; run `quern arena --help`");
  return show_mistakes(options.mistakes);
}

}  // namespace

Command add_arena(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("arena", "Measure the strength of a network that has learned a board game");
  command.add_words("RUN", options->words, "Run of `quern selfplay`, RUN@STEP, or the directory of a checkpoint");
  command.add_list("--run", options->flags, "RUN", "The same");
  command.add_flag("--mistakes", options->count_mistakes, "Count wrong moves, judged by perfect play");
  command.add_flag("--all", options->mistakes.all, "Every checkpoint of each run");
  command.add_number("--positions", options->mistakes.positions, "N", "Test positions of each set (default: 1000)",
                     {1, 100'000});
  command.add_number("--simulations", options->mistakes.simulations, "N", "Simulations of a search", {0, 1'000'000});
  command.add_number("--seed", options->mistakes.seed, "N", "Random seed of the test positions");
  command.add_threads(options->mistakes.threads);
  command.add_flag("--json", options->mistakes.json, "Print one JSON object");
  command.set_footer(kExamples);
  return {command, [options] { return run_arena(*options); }};
}

}  // namespace quern::cli
