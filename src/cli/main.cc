// quern: the command-line program. Parses the arguments and runs a command.
#include <vector>

#include "cli/commands.h"
#include "cli/program.h"
#include "cli/selfplay_actor.h"
#include "core/error.h"

namespace quern::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  quern train --run runs/first      train a model on generated short stories
  quern generate runs/first         generate a story with it
  quern eval runs/first             measure its loss on held-out text
  quern report --run runs/first     summarize the run, with the loss curve
  quern report runs/first runs/second
                                    compare runs
  quern dashboard runs              watch runs in a browser
  quern runs                        list the runs below runs/
  quern export runs/first --out exported
                                    write a model for Hugging Face transformers
  quern finetune --base runs/smol chats.jsonl --run runs/tuned
                                    adapt a model to conversations
  quern chat runs/tuned             talk with it
  quern selfplay connect4 --run runs/four
                                    learn a board game by playing against itself
  quern play runs/four              play against it
  quern arena runs/four --mistakes  count its mistakes, judged by perfect play
  quern uci runs/chess              play chess in any graphical interface
  quern data show chats.jsonl       show what a conversation trains
  quern plan --preset gpt2          show how much memory training would need
  quern rerun-step runs/first/incidents/step-00000042
                                    repeat a step that failed
  quern replay list                 list replay buffers in shared memory
  quern info                        measure this machine
  quern bench --list                list the benchmarks
  quern bench kernels --filter gemm compare matrix products with OpenBLAS

Whole numbers may be written as 1000, 1e3 or 1_000. Flags may be written with underscores: --top_k is --top-k.
Set the environment variable QUERN_TARGET to scalar, sse4, avx2 or avx3 to force a vector target.)";

int run_chosen(const std::vector<Command>& commands) {
  use_requested_target();
  for (const Command& command : commands) {
    if (command.parser.parsed()) return command.run();
  }
  throw Error(
      "expected a command: train, finetune, selfplay, play, arena, uci, generate, chat, eval, report, dashboard, runs, "
      "import, export, rerun-step, tokenize, data, plan, replay, info or bench; run `quern --help`");
}

int run(int argc, char** argv) {
  if (names_bench(argc, argv)) return run_bench_program(argv);
  if (names_actor(argc, argv)) return run_actor_program(argc, argv);
  CommandLine line("quern", "Trains small transformers on CPUs with bit-reproducible results.");
  Parser root = line.root();
  root.set_footer(kExamples);
  const std::vector<Command> commands = {add_train(root),  add_finetune(root), add_selfplay(root),   add_play(root),
                                         add_arena(root),  add_uci(root),      add_generate(root),   add_chat(root),
                                         add_eval(root),   add_report(root),   add_dashboard(root),  add_runs(root),
                                         add_import(root), add_export(root),   add_rerun_step(root), add_tokenize(root),
                                         add_data(root),   add_plan(root),     add_replay(root),     add_info(root)};
  list_bench(root);
  return line.run(argc, argv, [&] { return run_chosen(commands); });
}

}  // namespace
}  // namespace quern::cli

int main(int argc, char** argv) {
  return quern::cli::run_program([&] { return quern::cli::run(argc, argv); });
}
