#include "report/metrics.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files.h"

namespace quern::report {
namespace {

// The lines of steps before `first`; a last line that a kill cut short is dropped too.
std::string lines_before(const std::filesystem::path& path, uint64_t first) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line)) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    const bool whole = entry.is_object() && entry.contains("step") && entry["step"].is_number_unsigned();
    if (whole && entry["step"].get<uint64_t>() < first) kept += line + "\n";
  }
  return kept;
}

}  // namespace

Metrics::Metrics(std::filesystem::path file, uint64_t interval) : path_(std::move(file)), interval_(interval) {}

void Metrics::on_start(const train::RunStart& start) {
  write_file(path_, lines_before(path_, start.first_step));
  file_.open(path_, std::ios::app);
  if (!file_) throw Error("[metrics] {}: cannot be written", path_.string());
}

void Metrics::on_step(const train::StepReport& report) {
  if (report.finite && (interval_ == 0 || report.step % interval_ != 0)) return;
  nlohmann::ordered_json entry = {{"step", report.step},
                                  {"loss", report.loss},
                                  {"rate", report.rate},
                                  {"gradient_norm", report.gradient_norm},
                                  {"tokens_per_s", static_cast<double>(report.tokens) / report.seconds}};
  if (!report.finite) entry["skipped"] = true;
  write_line(entry.dump());
}

void Metrics::on_validation(uint64_t step, double loss) {
  write_line(nlohmann::ordered_json({{"step", step}, {"validation_loss", loss}}).dump());
}

void Metrics::write_line(const std::string& line) {
  errno = 0;
  if (file_ << line << '\n' << std::flush) return;
  throw Error("[metrics] {}: cannot write a line of {} bytes: {}", path_.string(), line.size() + 1,
              errno == 0 ? "unknown reason" : std::generic_category().message(errno));
}

}  // namespace quern::report
