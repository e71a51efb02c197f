#include "report/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/history.h"
#include "config/model_settings.h"
#include "core/byte_size.h"
#include "report/duration.h"
#include "report/numbers.h"

namespace quern::report {
namespace {

constexpr size_t kLinesShown = 8;

std::optional<Speed> speed_of(const RunLog& log) {
  std::vector<double> speeds;
  for (const LoggedStep& step : log.steps) {
    if (step.tokens_per_s && std::isfinite(*step.tokens_per_s)) speeds.push_back(*step.tokens_per_s);
  }
  if (speeds.empty()) return std::nullopt;
  std::sort(speeds.begin(), speeds.end());
  return Speed{.median = speeds[speeds.size() / 2], .slowest = speeds.front(), .fastest = speeds.back()};
}

void add_step(RunSummary& summary, const LoggedStep& step) {
  if (step.loss) {
    summary.loss = StepLoss{step.step, *step.loss};
    summary.step = step.step;
  }
  if (step.validation_loss) {
    summary.validation = StepLoss{step.step, *step.validation_loss};
    const bool better = !summary.best_validation || *step.validation_loss < summary.best_validation->loss;
    if (better && std::isfinite(*step.validation_loss)) summary.best_validation = summary.validation;
  }
  if (step.elapsed && std::isfinite(*step.elapsed)) summary.seconds = *step.elapsed;
  if (step.memory) {
    const uint64_t peak = std::max(step.memory->peak, summary.memory ? summary.memory->peak : 0);
    summary.memory = step.memory;
    summary.memory->peak = peak;
  }
  summary.skipped += step.skipped ? 1 : 0;
}

std::string speed_text(double tokens_per_s) { return bounded(tokens_per_s, 0, 1e12); }

std::string row(std::string_view name, std::string_view value) { return fmt::format("{:<13}{}\n", name, value); }

std::string model_text(const train::RunConfig& config, std::optional<uint64_t> parameters) {
  const auto& model = config.model;
  const std::string variants = train::variants_text(config);
  return fmt::format("{}{} layers, {} heads, width {}, context {}; {}{}{}",
                     parameters ? fmt::format("{} parameters: ", *parameters) : "", model.layers, model.heads,
                     model.width, model.context, variants, variants.empty() ? "" : "; ",
                     precision_name(config.train.precision));
}

std::string time_text(const RunSummary& summary) {
  if (!summary.speed) return "unknown";
  const Speed& speed = *summary.speed;
  return fmt::format("{} of steps; {} tokens/s ({} to {})", duration(summary.seconds), speed_text(speed.median),
                     speed_text(speed.slowest), speed_text(speed.fastest));
}

std::string validation_text(const RunSummary& summary) {
  if (!summary.validation) return "not measured";
  std::string text = fmt::format("{} at step {}", loss_text(summary.validation->loss), summary.validation->step);
  if (!summary.best_validation) return text;
  const StepLoss& best = *summary.best_validation;
  return text + fmt::format(", best {} at step {}", loss_text(best.loss), best.step);
}

// Memory of the process that the run has not allocated belongs to the program and its data.
std::string memory_text(const train::MemoryUse& m) {
  std::string text = row("memory", fmt::format("peak {}, planned {}; {} at the last sample", rounded_bytes(m.peak),
                                               rounded_bytes(m.planned), rounded_bytes(m.resident)));
  const auto add = [&](std::string_view name, uint64_t bytes) {
    if (bytes > 0) text += fmt::format("  {:<22}{:>10}\n", name, rounded_bytes(bytes));
  };
  add("weights", m.weights);
  add("gradient", m.gradient);
  add("moments", m.moments);
  add("prefetched batches", m.batches);
  add("activation arena", m.arena);
  add("pool", m.pool);
  add("program and data", m.resident > m.allocated() ? m.resident - m.allocated() : 0);
  return text;
}

// The lines with the name in front of the first; "none" if there are none.
std::string rows(std::string_view name, const std::vector<std::string>& lines) {
  if (lines.empty()) return row(name, "none");
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) text += row(i == 0 ? name : "", lines[i]);
  if (lines.size() > kLinesShown) text += row("", fmt::format("and {} more", lines.size() - kLinesShown));
  return text;
}

std::string action_text(const LoggedIncident& incident) {
  if (incident.action == "rollback") return fmt::format("back to step {}", incident.resumed_after);
  return incident.action == "skip" ? "skipped" : "stopped";
}

std::string incidents_text(const RunSummary& summary) {
  std::vector<std::string> lines;
  for (const LoggedIncident& incident : summary.incidents) {
    lines.push_back(fmt::format("{}; {}", incident.text, action_text(incident)));
  }
  return rows("incidents", lines);
}

// The source of the weights and the changes of settings; nothing if there are none.
std::string changes_text(const train::RunConfig& config) {
  std::vector<std::string> lines;
  for (const train::RecordedChange& change : train::recorded_changes(config)) lines.push_back(train::to_text(change));
  const std::string source = config.init.from.empty() ? "" : row("started from", config.init.from);
  return source + (lines.empty() ? "" : rows("changes", lines));
}

std::string warnings_text(const RunSummary& summary) {
  std::vector<std::string> lines = summary.warnings;
  const auto incidents = static_cast<uint64_t>(std::count_if(summary.incidents.begin(), summary.incidents.end(),
                                                             [](const auto& i) { return i.action == "skip"; }));
  if (const uint64_t skipped = summary.skipped - std::min(summary.skipped, incidents); skipped > 0) {
    lines.insert(lines.begin(), fmt::format("{} {} skipped: the gradient was not finite", skipped,
                                            skipped == 1 ? "update was" : "updates were"));
  }
  return rows("warnings", lines);
}

}  // namespace

std::string speed_text(const RunSummary& summary) { return summary.speed ? speed_text(summary.speed->median) : ""; }

RunSummary summarise(const train::RunConfig& config, const RunLog& log) {
  RunSummary summary;
  summary.steps = config.train.steps;
  for (const LoggedStep& step : log.steps) add_step(summary, step);
  summary.tokens = train::sequences_until(config, summary.step) * config.model.context;
  summary.speed = speed_of(log);
  summary.incidents = log.incidents;
  for (const LoggedWarning& warning : log.warnings) {
    summary.warnings.push_back(fmt::format("step {}: {}", warning.step, warning.text));
  }
  for (const std::string& line : log.damaged) summary.warnings.push_back(line + "; the line was skipped");
  return summary;
}

std::string to_text(const RunSummary& summary, const train::RunConfig& config, std::optional<uint64_t> parameters) {
  std::string text = row("model", model_text(config, parameters));
  text += row("steps", fmt::format("{} of {}, {} tokens", summary.step, summary.steps, summary.tokens));
  text += changes_text(config);
  text += row("time", time_text(summary));
  text += row("loss", summary.loss ? fmt::format("{} at step {}", loss_text(summary.loss->loss), summary.loss->step)
                                   : "nothing logged yet");
  text += row("validation", validation_text(summary));
  text += summary.memory ? memory_text(*summary.memory) : row("memory", "unknown");
  if (!summary.incidents.empty()) text += incidents_text(summary);
  return text + warnings_text(summary);
}

}  // namespace quern::report
