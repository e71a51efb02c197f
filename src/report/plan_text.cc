#include "report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/byte_size.h"

namespace quern::report {
namespace {

using train::MemoryPlan;
using train::Plan;
using train::Recompute;
using train::RunConfig;

std::string recompute_text(const Plan& plan, const RunConfig& config) {
  const size_t layers = config.model.layers;
  if (plan.interval >= layers) return "activations of all layers saved";
  return fmt::format("activations of {} of {} layers at a time, {} recomputed", plan.interval, layers,
                     layers - plan.interval);
}

std::string row(std::string_view name, size_t bytes, std::string_view note) {
  return fmt::format("  {:<22}{:>10}{}{}\n", name, rounded_bytes(bytes), note.empty() ? "" : "  ", note);
}

}  // namespace

std::string plan_summary(const Plan& plan, const RunConfig& config) {
  std::string text = fmt::format("{}, {}", precision_name(config.train.precision), recompute_text(plan, config));
  if (plan.logit_rows < train::kAllLogitRows) text += fmt::format(", logits of {} tokens at a time", plan.logit_rows);
  text += fmt::format("; {} {}", plan.threads, plan.threads == 1 ? "thread" : "threads");
  if (plan.cut.teams < plan.threads)
    text += fmt::format(" in {} {}", plan.cut.teams, plan.cut.teams == 1 ? "team" : "teams");
  text += fmt::format("; {} planned", rounded_bytes(plan.memory.total()));
  if (config.train.memory == 0) return text;
  text += fmt::format(" of {}", rounded_bytes(config.train.memory));
  if (plan.time > 1.005) text += fmt::format(", about {:.0f} % slower than without the limit", 100 * (plan.time - 1));
  return text;
}

std::string plan_table(const Plan& plan, const RunConfig& config) {
  const MemoryPlan& m = plan.memory;
  const std::string_view stored = precision_name(config.train.precision);
  std::string text = row("program and data", m.program, "") + row("weights", m.weights, "fp32");
  text += row("packed weights", m.packed, m.packed == 0 ? "packed by each product" : stored);
  text += row("gradient", m.gradient,
              m.gradient_buffers == 1 ? "fp32, shared by all workers"
                                      : fmt::format("fp32, shared by all workers, {} buffers for {} lanes",
                                                    m.gradient_buffers, plan.cut.share.own().size()));
  text += row("moments", m.moments, plan.cut.share.ranks == 1 ? "fp32" : "fp32, of this rank");
  if (m.exchange > 0) text += row("exchange", m.exchange, fmt::format("with {} other ranks", plan.cut.share.ranks - 1));
  if (m.update > 0) text += row("optimizer scratch", m.update, "fp32, for all threads");
  text += row("prefetched batches", m.batches, "");
  if (m.selfplay > 0) text += row("replay buffer, games", m.selfplay, "about; depends on how the games go");
  const std::string each = m.workers == 1 ? "" : fmt::format(", for each of {} workers", m.workers);
  text += row("activations", m.worker.activations, fmt::format("{}{}", stored, each));
  text += row("working buffers", m.worker.working, m.workers == 1 ? "" : each.substr(2));
  text += row("logits", m.worker.logits,
              fmt::format("{} tokens at a time{}",
                          std::min(plan.logit_rows, plan.cut.micro_batch_size * config.model.context), each));
  return text + row("total", m.total(), "");
}

}  // namespace quern::report
