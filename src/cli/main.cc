// quern: the command line program. Parses and hands over to a command.
#include <vector>

#include "cli/commands.h"
#include "cli/program.h"
#include "core/error.h"

namespace quern::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  quern train --run runs/first      learn to write small stories
  quern generate --run runs/first   let it write one
  quern eval --run runs/first       how well it predicts text that it has not seen
  quern report --run runs/first     how it went, with the loss curve
  quern plan --preset gpt2          how much memory training would take
  quern rerun-step runs/first/incidents/step-00000042
                                    repeat a step that went wrong
  quern info                        what this machine can do
  quern bench --list                the workloads
  quern bench kernels --filter gemm compare matrix products with OpenBLAS

QUERN_TARGET=scalar|sse4|avx2|avx3 in the environment forces a vector target.)";

int run_chosen(const std::vector<Command>& commands) {
  use_requested_target();
  for (const Command& command : commands) {
    if (command.parser.parsed()) return command.run();
  }
  throw Error(
      "expected a command: train, generate, eval, report, rerun-step, tokenize, plan, info or bench; "
      "run `quern --help`");
}

int run(int argc, char** argv) {
  if (names_bench(argc, argv)) return run_bench_program(argv);
  CommandLine line("quern", "Trains small transformers on CPUs, with results that are reproducible to the last bit.");
  Parser root = line.root();
  root.set_footer(kExamples);
  const std::vector<Command> commands = {add_train(root),      add_generate(root), add_eval(root), add_report(root),
                                         add_rerun_step(root), add_tokenize(root), add_plan(root), add_info(root)};
  list_bench(root);
  return line.run(argc, argv, [&] { return run_chosen(commands); });
}

}  // namespace
}  // namespace quern::cli

int main(int argc, char** argv) {
  return quern::cli::run_program([&] { return quern::cli::run(argc, argv); });
}
