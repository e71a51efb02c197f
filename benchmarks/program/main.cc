// quern-bench, started by `quern bench`: benchmarks the shipped code against the hardware's limits and against other
// libraries.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/program/diagnostics_command.h"
#include "benchmarks/program/output.h"
#include "benchmarks/program/train_command.h"
#include "benchmarks/workloads.h"
#include "cli/parser.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "core/error.h"

namespace quern::bench {
namespace {

using cli::Parser;
using cli::Progress;

struct Workload {
  const char* group;                       // the subcommand: "kernels" for `quern bench kernels`
  std::vector<std::string_view> families;  // prefixes of its results' names
  const char* description;
  void (*run)(Context&);
};

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      {"kernels", {"gemm"}, "matrix products NN, NT, TN against OpenBLAS", bench_gemm},
      {"kernels", {"adamw"}, "optimizer step against the same traffic without arithmetic", bench_adamw},
      {"kernels", {"layernorm"}, "forward and backward against copies and oneDNN", bench_layernorm},
      {"kernels", {"rmsnorm"}, "forward and backward against copies", bench_rmsnorm},
      {"kernels", {"attention"}, "causal, tiled, against the full T x T matrix", bench_attention},
      {"kernels", {"gelu"}, "output and gradient together, against the same traffic without arithmetic", bench_gelu},
      {"kernels",
       {"accumulate", "norm", "convert"},
       "gradient operations against the same traffic without arithmetic",
       bench_vector_ops},
      {"queue", {"queue"}, "bounded queue against a mutex, oneTBB and moodycamel", bench_queue},
      {"replay", {"replay"}, "adding and sampling against memcpy", bench_replay},
      {"replay", {"replay"}, "sequences and n-step returns against plain samples", bench_replay_episodes},
      {"replay", {"replay"}, "concurrent threads and processes against a single one", bench_replay_parallel},
      {"replay", {"replay"}, "saving and loading snapshots of 2.5 GB", bench_replay_snapshot},
      {"tokenize", {"tokenize"}, "tokenizers of every kind against splitting the text only", bench_tokenize},
      {"selfplay", {"selfplay"}, "Connect Four: the loop against its network, buffer and learner", bench_selfplay},
      {"dashboard", {"dashboard"}, "training while five pages show it", bench_dashboard}};
  return all;
}

struct Options {
  size_t threads = 1;
  bool json = false;
  bool quick = false;
  std::string filter;
};

// "gemm" or "gemm/nt/256" name a family, so only workloads with a family that ends with it can match ("norm" also
// matches "layernorm"). Any other filter may occur inside any name, and the workloads decide result by result.
bool may_match(const Workload& workload, std::string_view filter) {
  const std::string_view head = filter.substr(0, filter.find('/'));
  const auto is_head = [&](std::string_view family) { return family == head; };
  const auto ends_like_head = [&](std::string_view family) { return family.ends_with(head); };
  const bool names_family = std::any_of(workloads().begin(), workloads().end(), [&](const Workload& other) {
    return std::any_of(other.families.begin(), other.families.end(), is_head);
  });
  return !names_family || std::any_of(workload.families.begin(), workload.families.end(), ends_like_head);
}

int list_workloads() {
  for (const Workload& workload : workloads()) {
    const std::string families = fmt::format("{}", fmt::join(workload.families, ", "));
    fmt::print("{:<8} {:<26} {}\n", workload.group, families, workload.description);
  }
  fmt::print("{:<8} {:<26} {}\n", "train", "tiny, small, gpt2, ...", "complete training steps (--preset)");
  fmt::print("{:<11} {:<23} {}\n", "diagnostics", "tiny, small, gpt2", "the same, with and without diagnostics");
  return 0;
}

Context make_context(const Options& options, Progress& progress) {
  progress.show("measuring the machine");
  report::Machine machine = report::measure_machine(options.threads, options.quick);
  const Peers* peers = load_peers(machine.target.c_str());
  return {std::move(machine), peers, options.threads, options.quick, options.filter};
}

void run_workloads(std::string_view group, const Options& options, Context& context, Progress& progress) {
  for (const Workload& workload : workloads()) {
    if (workload.group != group || !may_match(workload, options.filter)) continue;
    const std::string what = fmt::format("running {}", fmt::join(workload.families, ", "));
    context.on_result = [&](const Result& result) {
      progress.clear();
      if (!options.json) print_row(result, !options.quick);
      progress.show(what + ", " + result.name + " done");
    };
    progress.show(what);
    workload.run(context);
  }
  progress.clear();
}

int run_bench(std::string_view group, const Options& options) {
  Progress progress;
  Context context = make_context(options, progress);
  progress.clear();
  if (!options.json) {
    print_machine(context.machine(), context.peers());
    print_header();
  }
  run_workloads(group, options, context, progress);
  if (context.results().empty() && !options.filter.empty()) {
    throw Error("--filter: nothing in `bench {}` matches '{}'; `quern bench --list` lists the workloads", group,
                options.filter);
  }
  if (options.json) {
    print_json(results_json(context));
  } else {
    print_summary(context);
  }
  return exit_code(context);
}

constexpr const char* kExamples = R"(Examples:
  quern bench --list
  quern bench kernels
  quern bench kernels --filter gemm/nt --threads 1
  quern bench queue --json > queue.json
  quern bench replay --filter replay/add
  quern bench tokenize --threads 2
  quern bench selfplay
  quern bench train --preset small
  quern bench diagnostics
  quern bench dashboard

A bar is a ratio that must be reached. Exit code: 0 all bars reached, 1 a bar missed or a wrong answer, 2 bad usage.)";

Parser add_group(Parser root, const char* name, const char* description, Options& options) {
  Parser group = root.add_command(name, description);
  group.add_threads(options.threads);
  group.add_flag("--json", options.json, "Print one JSON object");
  group.add_text("--filter", options.filter, "TEXT", "Only results whose name contains this");
  group.add_flag("--quick", options.quick, "One short repeat of each; checks answers but not bars");
  group.set_footer(kExamples);
  return group;
}

int run(int argc, char** argv) {
  cli::CommandLine line("quern bench", "Benchmark Quern against the hardware's limits and other libraries");
  Parser root = line.root();
  Options options;
  TrainBenchOptions train_options;
  DiagnosticsBenchOptions diagnostics_options;
  bool list = false;
  root.add_flag("--list", list, "List the workloads");
  root.set_footer(kExamples);
  const Parser kernels = add_group(root, "kernels", "GEMM, attention, LayerNorm, AdamW and vector operations", options);
  const Parser queue = add_group(root, "queue", "Bounded queue, 1x1 to 4x4 producers x consumers", options);
  const Parser replay = add_group(root, "replay", "Replay buffer: rows of 49,924 bytes, up to 5 GB", options);
  const Parser tokenize = add_group(root, "tokenize", "Tokenizers of every kind, in MB/s of text", options);
  const Parser selfplay = add_group(root, "selfplay", "Self-play of Connect Four: the loop and its parts", options);
  const Parser dashboard = add_group(root, "dashboard", "Training with and without open pages", options);
  const Parser train = add_train_bench(root, train_options);
  const Parser diagnostics = add_diagnostics_bench(root, diagnostics_options);
  return line.run(argc, argv, [&] {
    cli::use_requested_target();
    if (list) return list_workloads();
    if (kernels.parsed()) return run_bench("kernels", options);
    if (queue.parsed()) return run_bench("queue", options);
    if (replay.parsed()) return run_bench("replay", options);
    if (tokenize.parsed()) return run_bench("tokenize", options);
    if (selfplay.parsed()) return run_bench("selfplay", options);
    if (dashboard.parsed()) return run_bench("dashboard", options);
    if (train.parsed()) return run_train_bench(train_options);
    if (diagnostics.parsed()) return run_diagnostics_bench(diagnostics_options);
    throw Error(
        "bench: expected kernels, queue, replay, tokenize, selfplay, dashboard, train, diagnostics or --list; run "
        "`quern "
        "bench "
        "--help`");
  });
}

}  // namespace
}  // namespace quern::bench

int main(int argc, char** argv) {
  return quern::cli::run_program([&] { return quern::bench::run(argc, argv); });
}
