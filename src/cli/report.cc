// quern report: summarizes a run, or compares several.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/version.h"
#include "cli/warnings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "dashboard/static_report.h"
#include "report/comparison.h"
#include "report/loss_curve.h"
#include "report/run_log.h"
#include "report/run_summary.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> runs;   // --run
  std::vector<std::string> words;  // RUN
  bool json = false;
  bool csv = false;
  std::string html;
  bool force = false;
};

constexpr const char* kExamples = R"(Examples:
  quern report --run runs/first                       print a table and the loss curve, as wide as the terminal
  quern report --run runs/first --csv > first.csv     export every logged step
  quern report --run runs/first --json                print the table as JSON
  quern report runs/first runs/second runs/third      compare runs: what differs in their settings, and their losses
  quern report --run runs/first --html first.html     a page with all curves in one file, to send or to keep
  quern report runs/first runs/second --html both.html

--html writes the page of `quern dashboard` with its data in it, at most 1 MB: it needs no server and no network.
Works while the run is still training. The data comes from the run's metrics.jsonl.)";

// The parameter count of the newest checkpoint, from its file header; nullopt if no checkpoint can be read.
std::optional<uint64_t> parameters_of(const fs::path& run) {
  const fs::path folder = run / "checkpoints";
  const std::vector<uint64_t> steps = checkpoint::list_steps(folder);
  if (steps.empty()) return std::nullopt;
  try {
    const safetensors::File file(folder / checkpoint::directory_name(steps.back()) / "model.safetensors");
    uint64_t count = 0;
    for (const safetensors::Tensor& tensor : file.tensors()) {
      count += tensor.bytes.size() / safetensors::dtype_bytes(tensor.dtype);
    }
    return count;
  } catch (const Error&) {
    return std::nullopt;  // commands that need the checkpoint report the error
  }
}

Json to_json(const std::optional<report::StepLoss>& loss) {
  if (!loss) return nullptr;
  return {{"step", loss->step}, {"loss", std::isfinite(loss->loss) ? Json(loss->loss) : Json(nullptr)}};
}

Json to_json(const train::MemoryUse& m) {
  Json object;
  for (const auto& [name, member] : train::kMemoryFields) object[name] = m.*member;
  return object;
}

Json to_json(const std::vector<report::LoggedIncident>& incidents) {
  Json array = Json::array();
  for (const report::LoggedIncident& incident : incidents) {
    array.push_back({{"step", incident.step},
                     {"text", incident.text},
                     {"action", incident.action},
                     {"resumed_after", incident.resumed_after},
                     {"folder", incident.folder}});
  }
  return array;
}

Json to_json(const report::ComparedRun& run) {
  const auto& [name, config, log, summary] = run;
  const std::optional<uint64_t> parameters = parameters_of(name);
  Json object = {{"run", name},
                 {"model",
                  {{"parameters", parameters ? Json(*parameters) : Json(nullptr)},
                   {"layers", config.model.layers},
                   {"heads", config.model.heads},
                   {"width", config.model.width},
                   {"context", config.model.context},
                   {"precision", train::precision_name(config.train.precision)}}},
                 {"step", summary.step},
                 {"steps", summary.steps},
                 {"tokens", summary.tokens},
                 {"seconds", summary.seconds},
                 {"tokens_per_s", nullptr},
                 {"loss", to_json(summary.loss)},
                 {"validation", to_json(summary.validation)},
                 {"best_validation", to_json(summary.best_validation)},
                 {"memory", summary.memory ? to_json(*summary.memory) : Json(nullptr)},
                 {"skipped", summary.skipped},
                 {"incidents", to_json(summary.incidents)},
                 {"warnings", summary.warnings}};
  if (summary.speed) {
    object["tokens_per_s"] = {
        {"median", summary.speed->median}, {"slowest", summary.speed->slowest}, {"fastest", summary.speed->fastest}};
  }
  return object;
}

report::CurveOptions curve_options() {
  report::CurveOptions options;
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return options;
  constexpr size_t kMaxWidth = 160;
  options.color = std::getenv("NO_COLOR") == nullptr;
  if (size.ws_col > 0) options.width = std::min<size_t>(size.ws_col, kMaxWidth);
  return options;
}

report::RunLosses losses_of(const report::RunLog& log) {
  report::RunLosses losses;
  for (const report::LoggedStep& step : log.steps) {
    if (step.loss) losses.training.push_back({step.step, *step.loss});
    if (step.validation_loss) losses.validation.push_back({step.step, *step.validation_loss});
  }
  return losses;
}

std::string curve(const report::RunLog& log) {
  const report::RunLosses losses = losses_of(log);
  if (losses.training.empty() && losses.validation.empty()) return "";
  return "\n" + report::draw_losses(losses.training, losses.validation, curve_options());
}

report::ComparedRun read_run(const std::string& name) {
  report::ComparedRun run{.name = name, .config = train::read_config(name), .log = {}, .summary = {}};
  run.log = report::read_run_log(fs::path(name) / "metrics.jsonl");
  run.summary = report::summarise(run.config, run.log);
  return run;
}

void warn_of_damage(const report::ComparedRun& run) {
  for (const std::string& line : run.log.damaged) warn(line + "; the line was skipped");
}

void print_one(const report::ComparedRun& run, const Options& options) {
  if (options.csv) {
    warn_of_damage(run);
    fmt::print("{}", report::to_csv(run.log));
  } else if (options.json) {
    fmt::print("{}\n", json_text(to_json(run), 2));
  } else {
    fmt::print("{}{}", report::to_text(run.summary, run.config, parameters_of(run.name)), curve(run.log));
  }
}

Json comparison_json(const std::vector<report::ComparedRun>& runs) {
  Json object = {{"differences", Json::object()}, {"runs", Json::array()}};
  for (const report::SettingDifference& difference : report::differing_settings(runs)) {
    object["differences"][difference.setting] = difference.values;
  }
  for (const report::ComparedRun& run : runs) object["runs"].push_back(to_json(run));
  return object;
}

void print_comparison(const std::vector<report::ComparedRun>& runs, const Options& options) {
  if (options.csv) {
    for (const report::ComparedRun& run : runs) warn_of_damage(run);
    fmt::print("{}", report::comparison_csv(runs));
  } else if (options.json) {
    fmt::print("{}\n", json_text(comparison_json(runs), 2));
  } else if (runs.size() > report::kMaxCurves) {
    throw Error("report: expected at most {} runs in a table, found {}; use --json or --csv", report::kMaxCurves,
                runs.size());
  } else {
    std::vector<report::RunLosses> losses;
    for (const report::ComparedRun& run : runs) losses.push_back(losses_of(run.log));
    const report::CurveOptions curve = curve_options();
    fmt::print("{}\n{}", report::comparison_text(runs, curve.width), report::draw_runs(losses, curve));
  }
}

// A file that is not such a report is somebody's.
void check_html(const Options& options) {
  std::error_code code;
  if (options.force || !fs::exists(options.html, code) || dashboard::is_static_report(options.html)) return;
  throw Error("report: --html {}: expected a new file, or an earlier report, found another file; --force replaces it",
              in_quotes(options.html));
}

int write_html(const std::vector<std::string>& names, const Options& options) {
  if (options.json || options.csv) throw Error("report: expected --html alone, found it with --json or --csv");
  check_html(options);
  dashboard::StaticReportOptions report{.runs = {}, .version = version() + " (" + commit() + ")"};
  for (const std::string& name : names) {
    train::read_config(name);  // an Error if it is no run
    report.runs.emplace_back(name);
  }
  const std::string html = dashboard::static_report(report);
  write_file(options.html, html);
  fmt::print("{}: {} bytes, for any browser\n", printable(options.html), html.size());
  return 0;
}

int run_report(const Options& options) {
  std::vector<std::string> names = options.words;
  names.insert(names.end(), options.runs.begin(), options.runs.end());
  if (names.empty()) throw Error("report: expected --run DIR, a run; run `quern report --help`");
  if (!options.html.empty()) return write_html(names, options);
  if (options.force) throw Error("report: expected --html FILE with --force");
  if (options.json && options.csv) throw Error("report: expected --json or --csv, found both");
  std::vector<report::ComparedRun> runs;
  for (const std::string& name : names) runs.push_back(read_run(name));
  if (runs.size() == 1) {
    print_one(runs[0], options);
  } else {
    print_comparison(runs, options);
  }
  return 0;
}

}  // namespace

Command add_report(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser report = root.add_command("report", "Summarize a run, or compare several: table and loss curves, or CSV");
  report.add_words("RUN", options->words, "Directories of runs; more than one: compare them");
  report.add_list("--run", options->runs, "DIR", "The same as RUN; may be repeated");
  report.add_flag("--json", options->json, "Print one JSON object");
  report.add_flag("--csv", options->csv, "Print one line for each logged step");
  report.add_text("--html", options->html, "FILE", "Write a page with all curves, samples and events into one file");
  report.add_flag("--force", options->force, "Let --html replace a file that is no report");
  report.set_footer(kExamples);
  return {report, [options] { return run_report(*options); }};
}

}  // namespace quern::cli
