// quern rerun-step: repeats a step that failed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "core/error.h"
#include "diagnose/incident.h"
#include "diagnose/rerun_step.h"

namespace quern::cli {
namespace {

struct Options {
  std::string path;
  size_t threads = 1;
};

constexpr const char* kExamples = R"(Examples:
  quern rerun-step runs/book/incidents/step-00000042
  quern rerun-step runs/book/incidents/step-00000042 --threads 1

Repeats the step with the same weights, tokens and random numbers, reports whether loss and gradient are bit-identical
to the recorded ones, and names the first tensor that is not finite. Exits with code 1 if the result differs.)";

void print_finding(const train::RerunStep& step) {
  const auto& [weight, pass] = step.found.findings;
  if (weight) fmt::print("first bad weight  {} ({}), before the step\n", weight->tensor, train::kind_of(*weight));
  if (!pass) {
    fmt::print("first bad tensor  none: all values of forward and backward are finite\n");
    return;
  }
  fmt::print("first bad tensor  {} ({}), in sequence {} of {}, micro-batch {} of {}\n", pass->tensor,
             train::kind_of(*pass), pass->sequence + 1, step.cut.sequences, step.cut.part_of(pass->sequence) + 1,
             step.cut.micro_batches);
}

int run_rerun_step(const Options& options) {
  if (options.path.empty()) {
    throw Error("rerun-step: expected the folder of an incident; run `quern rerun-step --help`");
  }
  const train::RecordedIncident recorded = train::load_incident(options.path);
  const train::RerunStep step = train::rerun_step(recorded, options.threads);
  const train::Incident &was = recorded.incident, &now = step.found;
  fmt::print("recorded          {}\n", train::describe(was, step.cut));
  fmt::print("loss              {}\ngradient norm     {}\ngradient hash     {}\n", train::number_text(now.loss),
             train::number_text(now.gradient_norm), now.gradient_hash);
  print_finding(step);
  constexpr size_t kShown = 3;
  fmt::print("highest losses   ");
  for (size_t i = 0; i < std::min(kShown, step.losses.size()); ++i) {
    fmt::print(" {:.4g} (sequence {})", step.losses[i].loss, step.losses[i].sequence + 1);
  }
  fmt::print("\n");
  if (step.same) {
    fmt::print("bit-identical to the recorded step\n");
    return 0;
  }
  fmt::print("differs from the recorded step: loss {}, gradient norm {}, gradient hash {}, on target {} ({} here)\n",
             train::number_text(was.loss), train::number_text(was.gradient_norm), was.gradient_hash, was.target,
             now.target);
  return 1;
}

}  // namespace

Command add_rerun_step(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser rerun = root.add_command("rerun-step", "Repeat a failed step and name the first tensor that is not finite");
  rerun.add_word("FOLDER", options->path,
                 "Directory of the incident, runs/NAME/incidents/step-NNNNNNNN, or a file in it");
  rerun.add_threads(options->threads);
  rerun.set_footer(kExamples);
  return {rerun, [options] { return run_rerun_step(*options); }};
}

}  // namespace quern::cli
