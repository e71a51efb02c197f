#include "report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::report {
namespace {

using Json = nlohmann::ordered_json;

struct SavedLines {
  std::string lines;
  double elapsed = 0;           // as in the last of them
  uint64_t unknown = 0;         // lines that Metrics did not write
  uint64_t first_unknown = 0;   // number of the first of them, counted from 1
  std::string unknown_excerpt;  // its beginning
};

bool has_all(const nlohmann::json& entry, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(), [&](const char* name) { return entry.contains(name); });
}

// Whether Metrics writes this kind of line, so that dropping it only loses data that the run will repeat.
bool is_known(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_unsigned()) return false;
  return has_all(entry, {"loss", "rate", "gradient_norm", "tokens_per_s"}) || entry.contains("validation_loss") ||
         entry.contains("health") || entry.contains("incident") || entry.contains("warning") ||
         entry.contains("selfplay") || entry.contains("rating");
}

// Whether a line is about an incident after the first `incidents`. Its step does not tell: it is the step that the run
// rolled back to, and a run killed before its next checkpoint restarts there, hits the incident again and rolls back
// again. Lines of older versions have no number and are retained.
bool comes_again(const nlohmann::json& entry, uint64_t incidents) {
  const auto incident = entry.find("incident");
  if (incident == entry.end() || !incident->is_object()) return false;
  const auto number = incident->find("number");
  return number != incident->end() && number->is_number_unsigned() && number->get<uint64_t>() > incidents;
}

// The lines of steps before `first` and of the first `incidents`. Drops a last line without a line break, which a
// killed process leaves.
SavedLines lines_before(const std::filesystem::path& path, uint64_t first, uint64_t incidents) {
  SavedLines saved;
  if (!std::filesystem::exists(path)) return saved;
  std::istringstream file(read_file(path, std::numeric_limits<size_t>::max()));  // rejects a pipe, which would block
  uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const bool cut_short = file.eof();
    const nlohmann::json entry = parse_json(line);
    ++number;
    if (!is_known(entry)) {
      if (!cut_short && saved.unknown++ == 0) saved.first_unknown = number, saved.unknown_excerpt = in_quotes(line, 40);
      continue;
    }
    if (entry["step"].get<uint64_t>() >= first || comes_again(entry, incidents)) continue;
    saved.lines += line + "\n";
    if (entry.contains("elapsed") && entry["elapsed"].is_number()) saved.elapsed = entry["elapsed"].get<double>();
  }
  return saved;
}

Json to_json(const train::MemoryUse& memory) {
  Json object;
  for (const auto& [name, member] : train::kMemoryFields) object[name] = memory.*member;
  return object;
}

// The shortest text that parses to the same value; null if it is not finite, which JSON cannot represent.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

}  // namespace

Metrics::Metrics(std::filesystem::path file, uint64_t interval) : path_(std::move(file)), interval_(interval) {}

void Metrics::on_start(const train::RunStart& start) {
  elapsed_ = open_before(start.first_step, start.incidents);
  last_step_ = start.steps;
  for (const std::string& text : std::exchange(early_, {})) write_warning(text);
}

void Metrics::on_settings(const train::SettingsReport& settings) {
  if (unlogged_) write_step(*unlogged_);
  interval_ = settings.config.log.interval;
  last_step_ = settings.config.train.steps;
}

double Metrics::open_before(uint64_t first, uint64_t incidents) {
  file_.close();
  const SavedLines saved = lines_before(path_, first, incidents);
  if (saved.unknown > 0 && first == 1) {
    throw Error("[metrics] {}:{}: expected a line of this run, which starts at step 1, found {}; move the file away",
                path_.string(), saved.first_unknown, saved.unknown_excerpt);
  }
  write_file(path_, saved.lines);
  file_.open(path_, std::ios::app);
  if (!file_) throw Error("[metrics] {}: cannot be written", path_.string());
  step_ = first - 1;
  unlogged_.reset();
  if (saved.unknown > 0) {
    write_warning(fmt::format("dropped {} damaged {} of {}: line {} was {}", saved.unknown,
                              saved.unknown == 1 ? "line" : "lines", path_.filename().string(), saved.first_unknown,
                              saved.unknown_excerpt));
  }
  return saved.elapsed;
}

void Metrics::on_step(const train::StepReport& report) {
  step_ = report.step;
  elapsed_ += report.seconds;
  unlogged_ = report;
  const bool due = report.step == last_step_ || (interval_ > 0 && report.step % interval_ == 0);
  if (due || report.skipped()) write_step(report);
}

void Metrics::write_step(const train::StepReport& report) {
  Json entry = {{"step", report.step},
                {"loss", report.loss},
                {"rate", report.rate},
                {"gradient_norm", report.gradient_norm},
                {"tokens_per_s", static_cast<double>(report.tokens) / report.seconds},
                {"elapsed", elapsed_}};
  if (report.skipped()) entry["skipped"] = true;
  if (report.memory) entry["memory"] = to_json(*report.memory);
  write_line(json_text(entry));
  unlogged_.reset();
}

// Hundreds of numbers: formatting them with a JSON library would cost about 1 % of a step of preset tiny.
void Metrics::on_health(const train::HealthReport& report) {
  step_ = report.step;  // warnings about it are reported before on_step()
  std::string line = fmt::format("{{\"step\":{},\"health\":{{", report.step);
  for (const train::TensorHealth& tensor : report.tensors) {
    line += fmt::format("{}\"{}\":{{\"norm\":{},\"mean\":{},\"largest\":{},\"zeros\":{},\"update_ratio\":{}}}",
                        &tensor == report.tensors.data() ? "" : ",", tensor.name, number(tensor.norm),
                        number(tensor.mean), number(tensor.largest), number(tensor.zeros), number(tensor.update_ratio));
  }
  write_line(line + "}}");
}

// Logged under the step after which the run continues, so that the line is retained if that step is the last one saved.
void Metrics::on_incident(const train::IncidentReport& report) {
  if (report.action == train::Policy::kRollback) open_before(report.resumed_after + 1, report.number - 1);
  const Json entry = {{"step", report.resumed_after},
                      {"incident",
                       {{"step", report.step},
                        {"number", report.number},
                        {"text", report.text},
                        {"action", train::policy_name(report.action)},
                        {"folder", report.folder.filename().string()}}}};
  write_line(json_text(entry));
}

void Metrics::on_validation(uint64_t step, double loss) {
  write_line(json_text(Json({{"step", step}, {"validation_loss", loss}})));
}

void Metrics::on_selfplay(const train::SelfplayReport& report) {
  if (!report.complete) return;
  const Json played = {{"generation", report.generation},
                       {"games", report.games},
                       {"rows", report.rows},
                       {"game_length", report.game_length},
                       {"first_wins", report.first_wins},
                       {"draws", report.draws},
                       {"games_per_s", report.games_per_s},
                       {"positions_per_s", report.moves_per_s},
                       {"evaluations_per_s", report.evaluations_per_s},
                       {"seconds", report.seconds}};
  write_line(json_text(Json{{"step", report.step}, {"selfplay", played}}));
}

void Metrics::on_rating(const train::RatingReport& report) {
  const Json rating = {{"games", report.games}, {"score", report.score}, {"elo", report.elo}};
  write_line(json_text(Json{{"step", report.step}, {"rating", rating}}));
}

// Records where the run stopped and how long it took.
void Metrics::on_end(const train::RunEnd&) {
  if (unlogged_) write_step(*unlogged_);
}

void Metrics::on_warning(const std::string& text) {
  if (file_.is_open()) return write_warning(text);
  early_.push_back(text);
}

void Metrics::write_warning(const std::string& text) {
  const Json entry = {{"step", step_}, {"warning", text}};
  write_line(json_text(entry));  // `text` may contain a file name in any encoding
}

void Metrics::write_line(const std::string& line) {
  errno = 0;
  if (file_ << line << '\n' << std::flush) return;
  throw Error("[metrics] {}: cannot write a line of {} bytes: {}", path_.string(), line.size() + 1,
              errno == 0 ? "unknown reason" : std::generic_category().message(errno));
}

}  // namespace quern::report
