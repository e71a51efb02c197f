// quern report: summarizes a run.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "checkpoint/folder.h"
#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/warnings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "report/loss_curve.h"
#include "report/run_log.h"
#include "report/run_summary.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string run;
  bool json = false;
  bool csv = false;
};

constexpr const char* kExamples = R"(Examples:
  quern report --run runs/first                       print a table and the loss curve, as wide as the terminal
  quern report --run runs/first --csv > first.csv     export every logged step
  quern report --run runs/first --json                print the table as JSON

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

Json to_json(const Options& options, const report::RunSummary& summary, const train::RunConfig& config) {
  const std::optional<uint64_t> parameters = parameters_of(options.run);
  Json object = {{"run", options.run},
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

std::string curve(const report::RunLog& log) {
  std::vector<report::LossPoint> training, validation;
  for (const report::LoggedStep& step : log.steps) {
    if (step.loss) training.push_back({step.step, *step.loss});
    if (step.validation_loss) validation.push_back({step.step, *step.validation_loss});
  }
  if (training.empty() && validation.empty()) return "";
  return "\n" + report::draw_losses(training, validation, curve_options());
}

int run_report(const Options& options) {
  if (options.run.empty()) throw Error("report: expected --run DIR, a run; run `quern report --help`");
  if (options.json && options.csv) throw Error("report: expected --json or --csv, found both");
  const train::RunConfig config = train::read_config(options.run);
  const report::RunLog log = report::read_run_log(fs::path(options.run) / "metrics.jsonl");
  const report::RunSummary summary = report::summarise(config, log);
  if (options.csv) {
    for (const std::string& line : log.damaged) warn(line + "; the line was skipped");
    fmt::print("{}", report::to_csv(log));
  } else if (options.json) {
    fmt::print("{}\n", json_text(to_json(options, summary, config), 2));
  } else {
    fmt::print("{}{}", report::to_text(summary, config, parameters_of(options.run)), curve(log));
  }
  return 0;
}

}  // namespace

Command add_report(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser report = root.add_command("report", "Summarize a run: table and loss curve, or CSV");
  report.add_text("--run", options->run, "DIR", "Directory of the run");
  report.add_flag("--json", options->json, "Print one JSON object");
  report.add_flag("--csv", options->csv, "Print one line for each logged step");
  report.set_footer(kExamples);
  return {report, [options] { return run_report(*options); }};
}

}  // namespace quern::cli
