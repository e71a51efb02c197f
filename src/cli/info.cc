// quern info: prints the processor, the vector targets and the measured limits of this machine.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/run_argument.h"
#include "cli/run_info.h"
#include "cli/version.h"
#include "core/cpu_info.h"
#include "core/json.h"
#include "dist/connect.h"
#include "kernels/target.h"
#include "report/machine.h"

namespace quern::cli {
namespace {

struct Options {
  RunArgument run;
  size_t threads = 1;
  bool json = false;
  bool quick = false;
  bool targets = false;
};

constexpr const char* kExamples = R"(Examples:
  quern info                    measure with all usable cores (about 1 s)
  quern info --threads 1 --json measure one core, print JSON
  quern info runs/first         describe a run: step, losses and weights hash
  quern info --targets          list the values that QUERN_TARGET accepts, best first)";

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string bytes(size_t n) {
  if (n == 0) return "unknown";
  if (n >= size_t{1} << 30) return fmt::format("{:.1f} GiB", static_cast<double>(n) / (1 << 30));
  if (n >= size_t{1} << 20) return fmt::format("{:.4g} MiB", static_cast<double>(n) / (1 << 20));
  return fmt::format("{} KiB", n >> 10);
}

std::string target_names(const std::string& separator) {
  std::string names;
  for (const kernels::Target& target : kernels::available_targets()) {
    names += (names.empty() ? "" : separator) + target.name;
  }
  return names;
}

void print_text(const CpuInfo& cpu, const report::Machine& machine) {
  const char* unit = machine.fma ? "" : "  (no fused multiply-add: a multiply and an add)";
  fmt::print("{}\n\n", version_line());
  fmt::print("cpu          {}\n", or_unknown(cpu.model));
  fmt::print("cores        {} usable, {} threads measured\n", cpu.usable_cores, machine.threads);
  fmt::print("targets      {}; in use: {}\n", target_names(", "), machine.target);
  fmt::print("caches       L1d {}, L2 {}, L3 {}\n", bytes(cpu.l1d_bytes), bytes(cpu.l2_bytes), bytes(cpu.l3_bytes));
  fmt::print("MPI          {}\n", dist::mpi_description());
  fmt::print("memory       {}, pages of {}, huge pages: {}\n\n", bytes(cpu.memory_bytes), bytes(cpu.page_bytes),
             or_unknown(cpu.huge_pages));
  fmt::print("FMA peak     {:.1f} GFLOPS, one thread {:.1f}{}\n", machine.fma_peak_gflops, machine.fma_peak_one_gflops,
             unit);
  fmt::print("memory read  {:.1f} GB/s\n", machine.read_gbs);
  fmt::print("memory copy  {:.1f} GB/s (read + written)\n", machine.copy_gbs);
}

void print_json(const CpuInfo& cpu, const report::Machine& machine) {
  Json targets = Json::array();
  for (const kernels::Target& target : kernels::available_targets()) {
    targets.push_back({{"name", target.name}, {"fma", target.fma}});
  }
  const Json system = {{"model", cpu.model},           {"usable_cores", cpu.usable_cores},
                       {"l1d_bytes", cpu.l1d_bytes},   {"l2_bytes", cpu.l2_bytes},
                       {"l3_bytes", cpu.l3_bytes},     {"page_bytes", cpu.page_bytes},
                       {"huge_pages", cpu.huge_pages}, {"memory_bytes", cpu.memory_bytes}};
  const Json all = {
      {"machine", to_json(machine)}, {"mpi", dist::mpi_description()}, {"system", system}, {"targets", targets}};
  fmt::print("{}\n", json_text(all, 2));
}

int run_info(const Options& options) {
  if (options.run.given()) {
    print_run_info(run_of(options.run, "info"), options.json);
    return 0;
  }
  if (options.targets) {
    fmt::print("{}\n", target_names("\n"));
    return 0;
  }
  Progress progress;
  progress.show("measuring multiply-adds and memory, about a second");
  const report::Machine machine = report::measure_machine(options.threads, options.quick);
  progress.clear();
  const CpuInfo cpu = cpu_info();
  options.json ? print_json(cpu, machine) : print_text(cpu, machine);
  return 0;
}

}  // namespace

Command add_info(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser info = root.add_command("info", "Measure the limits of this machine, or describe a run");
  info.add_threads(options->threads);
  add_run(info, options->run, "Describe this run instead of the machine");
  info.add_flag("--json", options->json, "Print one JSON object");
  info.add_flag("--quick", options->quick, "Measure for a tenth of the time; less precise");
  info.add_flag("--targets", options->targets, "Print the vector targets, one per line, without measuring");
  info.set_footer(kExamples);
  return {info, [options] { return run_info(*options); }};
}

}  // namespace quern::cli
