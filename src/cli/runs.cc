// quern runs: lists the runs below a directory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/run_list.h"
#include "core/byte_size.h"
#include "core/json.h"
#include "core/text.h"
#include "report/numbers.h"

namespace quern::cli {
namespace {

struct Options {
  std::string folder = "runs";
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern runs                        the runs below runs/
  quern runs experiments            those below another directory
  quern runs --json                 as JSON, for a script

States: running; finished, the last step is done; stopped, can be resumed; failed, killed or stopped by an incident, can
be resumed from the newest checkpoint; damaged, with the reason. The best loss is that on held-out text.)";

// "5 s ago", "3 min ago", "7 h ago", "12 days ago".
std::string age_text(int64_t changed) {
  const int64_t seconds = std::max<int64_t>(0, std::time(nullptr) - changed);
  if (changed == 0) return "-";
  if (seconds < 60) return fmt::format("{} s ago", seconds);
  if (seconds < 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

constexpr size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;

Row row_of(const ListedRun& run) {
  Row row = {printable(run.path.string()), std::string(status_name(run.status)), "-", "-", "-", age_text(run.changed),
             rounded_bytes(run.bytes)};
  if (run.status == RunStatus::kDamaged) return row;
  row[2] = fmt::format("{}/{}", run.step, run.steps);
  if (run.loss) row[3] = report::loss_text(*run.loss);
  if (run.best) row[4] = fmt::format("{} at {}", report::loss_text(run.best->loss), run.best->step);
  return row;
}

void print_table(const std::vector<ListedRun>& runs) {
  std::vector<Row> rows = {{"run", "state", "step", "loss", "best", "changed", "size"}};
  for (const ListedRun& run : runs) rows.push_back(row_of(run));
  std::array<size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) line += fmt::format("{:<{}}  ", rows[r][c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    if (r > 0 && !runs[r - 1].problem.empty()) line += "  " + printable(runs[r - 1].problem);
    fmt::print("{}\n", line);
  }
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const ListedRun& run) {
  const bool known = run.status != RunStatus::kDamaged;
  return {{"run", run.path.string()},
          {"state", status_name(run.status)},
          {"step", known ? Json(run.step) : Json(nullptr)},
          {"steps", known ? Json(run.steps) : Json(nullptr)},
          {"loss", run.loss ? number(*run.loss) : Json(nullptr)},
          {"best_loss", run.best ? number(run.best->loss) : Json(nullptr)},
          {"best_step", run.best ? Json(run.best->step) : Json(nullptr)},
          {"changed", run.changed},
          {"bytes", run.bytes},
          {"problem", run.problem.empty() ? Json(nullptr) : Json(printable(run.problem))}};
}

int list(const Options& options) {
  const std::vector<ListedRun> runs = list_runs(options.folder);
  if (options.json) {
    Json object = {{"folder", options.folder}, {"runs", Json::array()}};
    for (const ListedRun& run : runs) object["runs"].push_back(to_json(run));
    fmt::print("{}\n", json_text(object, 2));
  } else if (runs.empty()) {
    fmt::print("no runs in {}\n", printable(options.folder));
  } else {
    print_table(runs);
  }
  return 0;
}

}  // namespace

Command add_runs(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser runs = root.add_command("runs", "List runs with their state, step, best loss and size");
  runs.add_word("DIR", options->folder, "Directory to search (default: runs)");
  runs.add_flag("--json", options->json, "Print one JSON object");
  runs.set_footer(kExamples);
  return {runs, [options] { return list(*options); }};
}

}  // namespace quern::cli
