// quern uci: a chess engine for graphical interfaces.
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/run_argument.h"
#include "cli/terminal_lines.h"
#include "cli/uci_engine.h"
#include "cli/warnings.h"
#include "learn/saved_network.h"

namespace quern::cli {
namespace {

struct Options {
  RunArgument run;
  uint64_t nodes = 800;
};

constexpr const char* kExamples = R"(Examples:
  quern uci runs/chess                     the newest checkpoint of a run of `quern selfplay chess`
  quern uci runs/chess@1000 --nodes 100    an earlier one, which thinks less
  printf 'position startpos moves e2e4\ngo nodes 200\n' | (cat; sleep 2) | quern uci runs/chess

Graphical interfaces (Cute Chess, Arena, Banksia, En Croissant and others) and programs that play matches start an
engine by its command, "quern" with the arguments "uci" and the run's path, and talk to it with UCI, the Universal Chess
Interface: uci, isready, ucinewgame, position, go, stop, setoption, quit; d prints the board.

A search ends after the nodes (simulations) or the time that `go` says; without either, after the option Nodes. With a
clock, a move gets the time left / 30, or / the moves to the time control, and 3/4 of the increment. What was found
about the position is kept from move to move. A mate that is shown is proven.)";

int run_uci(const Options& options) {
  const learn::SavedNetwork network = learn::load_network(run_of(options.run, "uci"), warn, "chess");
  UciEngine engine(network, options.nodes);
  while (const std::optional<std::string> line = read_line()) {
    if (!engine.handle(*line)) break;
  }
  return 0;
}

}  // namespace

Command add_uci(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("uci", "Play chess in a graphical interface: an engine that speaks UCI");
  add_run(command, options->run, "Run of `quern selfplay chess`, RUN@STEP, or the directory of a checkpoint");
  command.add_number("--nodes", options->nodes, "N", "Simulations of a search without limits of its own",
                     {1, 1'000'000'000});
  command.set_footer(kExamples);
  return {command, [options] { return run_uci(*options); }};
}

}  // namespace quern::cli
