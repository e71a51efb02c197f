#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "config/config_fields.h"
#include "core/byte_size.h"
#include "core/text.h"
#include "report/duration.h"
#include "report/numbers.h"

namespace quern::report {
namespace {

constexpr size_t kMaxCell = 28;  // of a value: a list of paths may be long, and its end tells more
constexpr size_t kGap = 2;

struct Row {
  std::string name;
  std::vector<std::string> cells;  // one for each run
};

std::string cell(const std::string& value) {
  const std::string text = printable(value);
  if (text.size() <= kMaxCell) return text.empty() ? "-" : text;
  return "..." + text.substr(text.size() - kMaxCell + 3);
}

std::string loss_cell(const std::optional<StepLoss>& loss) { return loss ? loss_text(loss->loss) : ""; }

std::string best_cell(const std::optional<StepLoss>& best) {
  return best ? fmt::format("{} at {}", loss_text(best->loss), best->step) : "";
}

template <typename Text>
Row row(std::string name, const std::vector<ComparedRun>& runs, const Text& text) {
  Row result{std::move(name), {}};
  for (const ComparedRun& run : runs) result.cells.push_back(cell(text(run.summary)));
  return result;
}

std::vector<Row> setting_rows(const std::vector<ComparedRun>& runs) {
  std::vector<Row> rows;
  for (const SettingDifference& difference : differing_settings(runs)) {
    Row setting{difference.setting, {}};
    for (const std::string& value : difference.values) setting.cells.push_back(cell(value));
    rows.push_back(std::move(setting));
  }
  return rows;
}

std::vector<Row> result_rows(const std::vector<ComparedRun>& runs) {
  using S = const RunSummary&;
  std::vector<Row> rows = {
      row("steps", runs, [](S s) { return fmt::format("{} of {}", s.step, s.steps); }),
      row("loss", runs, [](S s) { return loss_cell(s.loss); }),
      row("validation loss", runs, [](S s) { return loss_cell(s.validation); }),
      row("best validation", runs, [](S s) { return best_cell(s.best_validation); }),
      row("time", runs, [](S s) { return s.speed ? duration(s.seconds) : ""; }),
      row("tokens/s", runs, [](S s) { return speed_text(s); }),
      row("peak memory", runs, [](S s) { return s.memory ? rounded_bytes(s.memory->peak) : ""; }),
  };
  const auto troubled = [](S s) { return s.incidents.size() + s.warnings.size() > 0; };
  if (std::any_of(runs.begin(), runs.end(), [&](const ComparedRun& run) { return troubled(run.summary); })) {
    rows.push_back(row("incidents", runs, [](S s) { return fmt::format("{}", s.incidents.size()); }));
    rows.push_back(row("warnings", runs, [](S s) { return fmt::format("{}", s.warnings.size()); }));
  }
  return rows;
}

size_t column_width(const std::vector<Row>& rows, size_t column) {
  size_t width = 1;
  for (const Row& row : rows) width = std::max(width, row.cells[column].size());
  return width + kGap;
}

std::string without_trailing_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

// The columns from `begin` to before `end` of all rows; a row without a name is a blank line.
std::string block(const std::vector<Row>& rows, size_t begin, size_t end, const std::vector<size_t>& widths,
                  size_t label) {
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("{:<{}}", row.name, label);
    for (size_t c = begin; c < end; ++c) line += fmt::format("{:<{}}", row.cells[c], widths[c]);
    text += without_trailing_blanks(line);
  }
  return text;
}

char letter(size_t run) { return static_cast<char>('A' + run); }

}  // namespace

std::vector<SettingDifference> differing_settings(const std::vector<ComparedRun>& runs) {
  std::vector<SettingDifference> differences;
  for (const train::Field& field : train::fields()) {
    SettingDifference difference{field.path(), {}};
    for (const ComparedRun& run : runs) difference.values.push_back(train::value_text(field, run.config));
    const std::set<std::string> distinct(difference.values.begin(), difference.values.end());
    if (distinct.size() > 1) differences.push_back(std::move(difference));
  }
  return differences;
}

std::string comparison_text(const std::vector<ComparedRun>& runs, size_t width) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) text += fmt::format("{}  {}\n", letter(i), printable(runs[i].name));
  std::vector<Row> rows = {{"", {}}};
  for (size_t i = 0; i < runs.size(); ++i) rows[0].cells.emplace_back(1, letter(i));
  const std::vector<Row> settings = setting_rows(runs);
  rows.insert(rows.end(), settings.begin(), settings.end());
  if (settings.empty()) text += "the settings are equal\n";
  const Row blank{"", std::vector<std::string>(runs.size())};
  if (!settings.empty()) rows.push_back(blank);
  for (Row& result : result_rows(runs)) rows.push_back(std::move(result));

  size_t label = 0;
  for (const Row& row : rows) label = std::max(label, row.name.size() + kGap);
  std::vector<size_t> widths;
  for (size_t c = 0; c < runs.size(); ++c) widths.push_back(column_width(rows, c));
  for (size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    size_t used = label;
    while (end < runs.size() && (end == begin || used + widths[end] <= width + kGap)) used += widths[end++];
    text += "\n" + block(rows, begin, end, widths, label);
  }
  return text;
}

std::string comparison_csv(const std::vector<ComparedRun>& runs) {
  std::string text = "run," + csv_header();
  for (const ComparedRun& run : runs) {
    std::string name = "\"";
    for (const char c : printable(run.name)) name += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += csv_lines(run.log, name + "\",");
  }
  return text;
}

}  // namespace quern::report
