#include "report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/cpu_info.h"
#include "core/error.h"
#include "core/files.h"
#include "core/host_name.h"
#include "core/json.h"
#include "core/text.h"
#include "train/plan.h"

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
         entry.contains("selfplay") || entry.contains("rating") || entry.contains("start") || entry.contains("end") ||
         entry.contains("checkpoint") || entry.contains("settings") || entry.contains("sample") ||
         entry.contains("operations") || entry.contains("limit");
}

// Whether the line comes again with the steps from `first` on. Settings that change from there are reported again.
bool is_repeated(const nlohmann::json& entry, uint64_t first) {
  const uint64_t step = entry["step"].get<uint64_t>();
  return step >= first || (step + 1 == first && entry.contains("settings"));
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
    if (is_repeated(entry, first) || comes_again(entry, incidents)) continue;
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

// Of a share, four decimals say all there is.
double rounded(double share) { return std::round(share * 1e4) / 1e4; }

double busy_share(const train::StepReport& report) {
  const double time = static_cast<double>(report.threads) * report.seconds;
  return time > 0 ? std::clamp(1 - report.waits.sum() / time, 0.0, 1.0) : 0;
}

// "2026-11-19T19:30:00Z".
std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// A shell can expand *.txt to any number of names.
std::string shortened(const std::string& text) {
  constexpr size_t kMax = 2000;
  return text.size() <= kMax ? text : text.substr(0, kMax) + "...";
}

}  // namespace

Metrics::Metrics(std::filesystem::path file, MetricsOptions options)
    : path_(std::move(file)), options_(std::move(options)), operations_(10 * options_.interval) {}

void Metrics::on_start(const train::RunStart& start) {
  elapsed_ = open_before(start.first_step, start.incidents);
  last_step_ = start.steps;
  flops_per_token_ = start.flops_per_token;
  if (start.loss_parts.size() > 1) loss_parts_ = start.loss_parts;
  limiter_ = Limiter(flops_per_token_, options_.peak_gflops ? options_.peak_gflops() : 0);
  if (options_.operations) operations_.start(start);
  if (options_.process) write_start(start);
  for (const std::string& text : std::exchange(early_, {})) write_warning(text);
}

void Metrics::on_settings(const train::SettingsReport& settings) {
  if (unlogged_) write_step(*unlogged_);
  options_.interval = settings.config.log.interval;
  last_step_ = settings.config.train.steps;
  if (!options_.process || settings.change.empty()) return;
  write_line(json_text(Json{{"step", settings.first_step - 1}, {"settings", settings.change}}));
}

void Metrics::write_start(const train::RunStart& start) {
  const CpuInfo cpu = cpu_info();
  Json facts = {{"time", time_text()}, {"host", host_name()}, {"cpu", cpu.model}, {"cores", cpu.usable_cores}};
  if (start.plan != nullptr) facts["threads"] = start.plan->threads;
  facts["ranks"] = start.ranks;
  facts["steps"] = start.steps;
  facts["parameters"] = start.parameters;
  facts["trainable"] = start.trainable;
  if (start.train_tokens > 0) facts["train_tokens"] = start.train_tokens;
  if (start.validation_tokens > 0) facts["validation_tokens"] = start.validation_tokens;
  for (const auto& [name, text] : {std::pair{"data", &options_.data},
                                   {"command", &options_.command},
                                   {"version", &options_.version},
                                   {"commit", &options_.commit}}) {
    if (!text->empty()) facts[name] = shortened(*text);
  }
  write_line(json_text(Json{{"step", start.first_step - 1}, {"start", facts}}));
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
  const bool due = report.step == last_step_ || (options_.interval > 0 && report.step % options_.interval == 0);
  if (options_.process) limiter_.add(report);
  if (due || report.skipped()) write_step(report);
  if (options_.operations) write_operations(report);
  if (options_.process && due) write_limit(report.step);
}

void Metrics::write_operations(const train::StepReport& report) {
  const std::vector<OperationShare> shares = operations_.after(report);
  if (shares.empty()) return;
  Json operations;
  for (const OperationShare& share : shares) operations[std::string(share.name)] = rounded(share.share);
  write_line(json_text(Json{{"step", report.step}, {"operations", operations}}));
}

// When it has changed. A run on the border between two of them gets a line for every 20 logged steps at most.
void Metrics::write_limit(uint64_t step) {
  constexpr uint64_t kPatience = 20;
  if (options_.peak_gflops) limiter_.set_peak(options_.peak_gflops());
  ++since_limit_;
  const std::string_view limit = limiter_.name();
  if (limit.empty() || limit == limit_ || (!limit_.empty() && since_limit_ < kPatience)) return;
  limit_ = limit;
  since_limit_ = 0;
  write_line(json_text(Json{{"step", step}, {"limit", limit_}}));
}

void Metrics::write_step(const train::StepReport& report) {
  Json entry = {{"step", report.step},
                {"loss", report.loss},
                {"rate", report.rate},
                {"gradient_norm", report.gradient_norm},
                {"tokens_per_s", static_cast<double>(report.tokens) / report.seconds},
                {"elapsed", elapsed_}};
  if (options_.process) {
    const double peak = options_.peak_gflops ? options_.peak_gflops() : 0;
    const double gflops = static_cast<double>(report.tokens) * flops_per_token_ / report.seconds * 1e-9;
    if (peak > 0 && gflops <= peak) entry["mfu"] = rounded(gflops / peak);
    entry["busy"] = rounded(busy_share(report));
  }
  if (report.targets > 0 && report.targets < report.tokens && loss_parts_.empty()) entry["targets"] = report.targets;
  for (size_t i = 0; i < loss_parts_.size(); ++i) entry["loss_parts"][loss_parts_[i]] = report.loss_parts[i];
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

void Metrics::on_sample(const train::SampleReport& report) {
  const Json sample = {{"prompt", report.prompt}, {"text", report.text}};
  write_line(json_text(Json{{"step", report.step}, {"sample", sample}}));
}

void Metrics::on_checkpoint(uint64_t step, const std::filesystem::path& path) {
  if (options_.process) write_line(json_text(Json{{"step", step}, {"checkpoint", path.filename().string()}}));
}

// Records where the run stopped and how long it took.
void Metrics::on_end(const train::RunEnd& end) {
  operations_.stop();
  if (unlogged_) write_step(*unlogged_);
  if (!options_.process) return;
  Json facts = {{"time", time_text()}, {"finished", end.finished}};
  if (end.peak_bytes > 0) facts["peak"] = end.peak_bytes;
  facts["planned"] = end.planned_bytes;
  if (!end.weights_hash.empty()) facts["weights_hash"] = end.weights_hash;
  write_line(json_text(Json{{"step", step_}, {"end", facts}}));
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
