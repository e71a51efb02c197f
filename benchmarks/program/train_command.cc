#include "benchmarks/program/train_command.h"

#include <fmt/format.h>

#include "benchmarks/program/output.h"
#include "benchmarks/program/training_options.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "config/config.h"
#include "core/byte_size.h"
#include "core/cpu_info.h"
#include "nn/models/model_config.h"

namespace quern::bench {
namespace {

constexpr const char* kExamples = R"(Examples:
  quern bench train                                  preset tiny on every core
  quern bench train --preset small --threads 1 --json
  quern bench train --preset gpt2 --batch 1 --context 1024   one long sequence, computed by a team of threads
  quern bench train --preset small --precision bf16 --recompute sqrt   against fp32 without recomputation

Interleaves rounds with these threads, with one thread, and with a barrier of all threads after every operation. Reports
the best of each; all must end with the same weights. MFU is the useful work (docs/performance.md) over the FMA peak.)";

Json to_json(const TrainFigures& figures) {
  return {{"preset", figures.preset},
          {"threads", figures.threads},
          {"teams", figures.teams},
          {"tokens_per_s", figures.tokens_per_s},
          {"gflops", figures.gflops},
          {"fma_peak_gflops", figures.fma_peak_gflops},
          {"mfu", figures.mfu ? Json(*figures.mfu) : Json(nullptr)},
          {"utilisation", figures.utilisation},
          {"ticket_wait", figures.ticket_wait},
          {"team_wait", figures.team_wait},
          {"queue_wait", figures.queue_wait},
          {"locks_per_step", figures.locks_per_step ? Json(*figures.locks_per_step) : Json(nullptr)},
          {"sleeps_per_step", figures.sleeps_per_step},
          {"peak_rss_bytes", figures.peak_rss_bytes},
          {"planned_bytes", figures.planned_bytes},
          {"activation_bytes", figures.activation_bytes},
          {"working_bytes", figures.working_bytes}};
}

void print_figures(const TrainFigures& f) {
  fmt::print("{}: {:.0f} tokens/s, {:.1f} GFLOPS, MFU {}, peak memory {}, planned {}\n", f.preset, f.tokens_per_s,
             f.gflops, f.mfu ? fmt::format("{:.1f} %", 100 * *f.mfu) : "unknown (machine busy)",
             rounded_bytes(f.peak_rss_bytes), rounded_bytes(f.planned_bytes));
  fmt::print(
      "{} threads in {} teams: busy {:.1f} %, waiting for turns {:.2f} %, for the team {:.2f} %, for work {:.2f} %; "
      "per step: {} locks, {:.1f} sleeps\n",
      f.threads, f.teams, 100 * f.utilisation, 100 * f.ticket_wait, 100 * f.team_wait, 100 * f.queue_wait,
      f.locks_per_step ? fmt::format("{:g}", *f.locks_per_step) : "unknown", f.sleeps_per_step);
}

}  // namespace

cli::Parser add_train_bench(cli::Parser root, TrainBenchOptions& options) {
  cli::Parser train = root.add_command("train", "Complete training steps of a preset");
  add_training_bench_options(train, options);
  train.add_number("--steps", options.workload.steps, "N", "Steps per timed round; 0: about one second");
  train.add_number("--batch", options.workload.batch, "N", "Sequences per step; 0: the preset's");
  train.add_number("--context", options.workload.context, "N", "Tokens per sequence; 0: the preset's",
                   {0, nn::kMaxContext});
  train.add_list("--set", options.workload.settings, "TABLE.NAME=VALUE",
                 "Change a setting of the config; may be repeated");
  train.add_text("--precision", options.workload.precision, "NAME", "fp32, bf16 or fp16, compared with fp32");
  train.add_text("--recompute", options.workload.recompute, "NAME",
                 "none, every-layer, sqrt or interval=K, compared with none");
  train.set_footer(kExamples);
  return train;
}

int run_train_bench(const TrainBenchOptions& options) {
  cli::Progress progress;
  progress.show("measuring the machine");
  Context context(report::measure_machine(options.threads, options.quick), nullptr, options.threads, options.quick);
  progress.show(fmt::format("training {}", options.workload.preset));
  const TrainFigures figures = bench_train(context, options.workload);
  progress.clear();
  if (options.json) {
    Json all = to_json(figures);
    all.update(results_json(context));
    print_json(all);
  } else {
    print_header();
    for (const Result& result : context.results()) print_row(result, !options.quick);
    fmt::print("\n");
    print_figures(figures);
  }
  return exit_code(context);
}

}  // namespace quern::bench
