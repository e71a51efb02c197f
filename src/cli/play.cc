// quern play: a game against a network that has learned it.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/play_opponent.h"
#include "cli/play_terminal.h"
#include "core/error.h"

namespace quern::cli {
namespace {

struct Options {
  std::vector<std::string> words;  // GAME, RUN
  std::string run;                 // of --run
  std::string against;
  std::string side = "first";
  std::string position;
  uint64_t simulations = 400;
};

constexpr const char* kExamples = R"(Examples:
  quern play runs/four                           you move first
  quern play runs/four --side second             it moves first
  quern play runs/four --side alternate          in turns, with each /new
  quern play runs/four@500 --simulations 50      an earlier checkpoint that thinks less
  quern play runs/four --position 4455           from a position: the moves that lead to it
  quern play runs/chess --position "8/8/8/8/8/4k3/4q3/4K3 w - - 0 1"
                                                 in chess, FEN
  quern play tictactoe --against perfect         without a network
  printf '4\n4\n4\n/hint\n' | quern play runs/four

Moves are typed as the game writes them: the square 1 to 9 of tictactoe, the column 1 to 7 of connect4, e2e4, e1g1
(castling) and e7e8q of chess. /help lists the commands: /hint, /board, /undo, /new and /quit.

A network plays the move that its search visited the most, and draws no random numbers: it answers the same moves
with the same moves. --against perfect needs a game that is solved, tictactoe or connect4, and chooses at random among
equally good moves; the first eight moves of connect4 take up to minutes each.)";

bool is_game(const std::string& word) { return word == "tictactoe" || word == "connect4" || word == "chess"; }

// What the words mean: GAME, RUN, or both.
struct Named {
  std::string game, run;
};

Named named(const Options& options) {
  std::vector<std::string> words = options.words;
  Named result{.game = {}, .run = options.run};
  if (!words.empty() && is_game(words[0])) {
    result.game = words[0];
    words.erase(words.begin());
  }
  if (!words.empty() && result.run.empty()) {
    result.run = words[0];
    words.erase(words.begin());
  }
  if (!words.empty()) throw Error("play: expected one run, found {} as well", in_quotes(words[0]));
  return result;
}

OpponentOfGame find_opponent(const Options& options) {
  const auto [game, run] = named(options);
  if (options.against.empty()) {
    if (run.empty()) throw Error("play: expected a run, as in `quern play runs/four`; run `quern play --help`");
    return network_opponent(run, game, options.simulations);
  }
  if (!run.empty() || game.empty()) {
    throw Error("play: --against perfect: expected tictactoe or connect4, found {}",
                run.empty() ? "no game" : "the run " + in_quotes(run));
  }
  return perfect_opponent(game);
}

Side side_of(const std::string& name) {
  if (name == "alternate") return Side::kAlternate;
  return name == "first" ? Side::kFirst : Side::kSecond;
}

int run_play(const Options& options) {
  const OpponentOfGame found = find_opponent(options);
  std::unique_ptr<games::Position> start =
      options.position.empty() ? found.game->start() : found.game->parse_position(options.position);
  if (start->over()) throw Error("play: --position: expected a game that is not over, found one that is");
  PlayTerminal(*found.game, *found.opponent, side_of(options.side), std::move(start)).run();
  return 0;
}

}  // namespace

Command add_play(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("play", "Play a board game against a trained network");
  command.add_words("GAME RUN", options->words,
                    "The game, if it should be checked or there is no run; then a run of `quern selfplay`, RUN@STEP, "
                    "or the directory of a checkpoint");
  command.add_text("--run", options->run, "RUN", "The run, if it is not an argument");
  command.add_choice("--against", options->against, {"perfect"}, "PLAYER", "perfect: play without a network");
  command.add_choice("--side", options->side, {"first", "second", "alternate"}, "SIDE", "Your side");
  command.add_text("--position", options->position, "TEXT", "Where each game starts: moves, or FEN for chess");
  command.add_number("--simulations", options->simulations, "N", "Simulations of each search; 0: the network alone",
                     {0, 1'000'000});
  command.set_footer(kExamples);
  return {command, [options] { return run_play(*options); }};
}

}  // namespace quern::cli
