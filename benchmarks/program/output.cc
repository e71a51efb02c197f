#include "benchmarks/program/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "cli/machine_json.h"
#include "core/json.h"

namespace quern::bench {
namespace {

// About four digits, never an exponent.
std::string figure(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 100 ? 1 : 2);
}

std::string verdict(const Result& result, bool judged) {
  if (!result.bar) return "";
  return judged ? (result.pass ? "ok" : "BELOW") : "not checked";
}

Json to_json(const Result& result) {
  return {{"name", result.name},
          {"value", result.value},
          {"unit", result.unit},
          {"reference", result.reference},
          {"reference_value", result.reference_value},
          {"ratio", result.ratio},
          {"bar", result.bar ? Json(*result.bar) : Json(nullptr)},
          {"pass", result.pass}};
}

constexpr const char* kRow = "{:<36} {:>10} {:<8} {:<13} {:>10} {:>6} {:>6} {}\n";

}  // namespace

void print_machine(const report::Machine& machine, const Peers* peers) {
  fmt::print("{}, target {}, {} thread{}: {:.1f} GFLOPS (one thread {:.1f}), read {:.1f} GB/s, copy {:.1f} GB/s\n",
             machine.cpu, machine.target, machine.threads, machine.threads == 1 ? "" : "s", machine.fma_peak_gflops,
             machine.fma_peak_one_gflops, machine.read_gbs, machine.copy_gbs);
  if (peers == nullptr) {
    fmt::print("peers: none (no quern_peers.so next to the program); comparisons with peers are skipped\n\n");
  } else {
    fmt::print("peers: {}, {}, oneTBB, moodycamel\n\n", peers->blas_name(), peers->dnnl_name());
  }
}

void print_header() { fmt::print(kRow, "name", "ours", "unit", "compared with", "theirs", "ratio", "bar", ""); }

void print_row(const Result& result, bool judged) {
  if (!result.pass && !result.bar) {  // only a wrong answer fails without a bar
    fmt::print("{:<36} {:>10} {}\n", result.name, "WRONG", result.reference);
    return;
  }
  const std::string bar = result.bar ? fmt::format("{:.2f}", *result.bar) : "-";
  fmt::print(kRow, result.name, figure(result.value), result.unit, result.reference, figure(result.reference_value),
             fmt::format("{:.2f}", result.ratio), bar, verdict(result, judged));
  std::fflush(stdout);
}

void print_summary(const Context& context) {
  double logarithms = 0;
  size_t products = 0, bars = 0, missed = 0;
  for (const Result& result : context.results()) {
    bars += result.bar ? 1 : 0;
    missed += result.bar && !result.pass ? 1 : 0;
    const bool product = result.name.starts_with("gemm/") && result.name != "gemm/geomean";
    if (!product || result.reference != "openblas" || result.ratio <= 0) continue;
    logarithms += std::log(result.ratio);
    ++products;
  }
  fmt::print("\n");
  if (products > 0) {
    fmt::print("GEMM against OpenBLAS: geometric mean of {} ratios {:.3f}\n", products,
               std::exp(logarithms / static_cast<double>(products)));
  }
  for (const std::string& wrong : context.wrong_answers()) fmt::print("wrong answer: {}\n", wrong);
  if (context.quick()) {
    fmt::print("results: {}; --quick does not check bars\n", context.results().size());
  } else {
    fmt::print("results: {}, bars missed: {} of {}\n", context.results().size(), missed, bars);
  }
}

Json results_json(const Context& context) {
  Json machine = cli::to_json(context.machine());
  const Peers* peers = context.peers();
  machine["blas"] = peers ? Json(peers->blas_name()) : Json(nullptr);
  machine["dnnl"] = peers ? Json(peers->dnnl_name()) : Json(nullptr);
  machine["quick"] = context.quick();
  Json results = Json::array();
  for (const Result& result : context.results()) results.push_back(to_json(result));
  return {{"machine", machine}, {"results", results}};
}

void print_json(const Json& object) { fmt::print("{}\n", json_text(object, 2)); }

int exit_code(const Context& context) {
  const auto passed = [](const Result& result) { return result.pass; };
  return std::all_of(context.results().begin(), context.results().end(), passed) ? 0 : 1;
}

}  // namespace quern::bench
