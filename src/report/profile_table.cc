#include "report/profile_table.h"

#include <fmt/format.h>

#include <vector>

namespace quern::report {
namespace {

// About three digits.
std::string time(double seconds) {
  const auto digits = [](double value) { return value >= 100 ? 0 : value >= 10 ? 1 : 2; };
  if (seconds < 1e-3) return fmt::format("{:.{}f} us", seconds * 1e6, digits(seconds * 1e6));
  if (seconds < 1) return fmt::format("{:.{}f} ms", seconds * 1e3, digits(seconds * 1e3));
  return fmt::format("{:.{}f} s", seconds, digits(seconds));
}

std::string rate(const ProfileRow& row) {
  if (row.unit == Unit::kNone || row.work == 0) return "";
  return fmt::format("{:.1f} {}", row.rate() * 1e-9, row.unit == Unit::kFlops ? "GFLOPS" : "GB/s");
}

std::string of_limit(const ProfileRow& row, const ProfileSummary& summary) {
  const double limit = row.unit == Unit::kFlops ? summary.peak_gflops : summary.copy_gbs;
  if (row.unit == Unit::kNone || row.work == 0 || limit <= 0) return "";
  return fmt::format("{:.0f} %", 100 * row.rate() * 1e-9 / (limit / static_cast<double>(summary.workers)));
}

constexpr fmt::string_view kRow = "{:<28} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>13} {:>9}";

// A line of the table, without trailing blanks.
template <typename... Columns>
std::string row_of(const Columns&... columns) {
  std::string text = fmt::format(fmt::runtime(kRow), columns...);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string line(const ProfileRow& row, const std::string& share, const ProfileSummary& summary) {
  return row_of(row.name, share, time(row.total), time(row.average()), time(row.min), time(row.max), row.count,
                rate(row), of_limit(row, summary));
}

double workers_time(const ProfileSummary& summary) { return static_cast<double>(summary.workers) * summary.seconds; }

double sum_of(const std::vector<ProfileRow>& rows) {
  double sum = 0;
  for (const ProfileRow& row : rows) sum += row.total;
  return sum;
}

}  // namespace

double covered(const ProfileSummary& summary) {
  return summary.seconds > 0 ? sum_of(summary.profile->rows(0, summary.workers)) / workers_time(summary) : 0;
}

std::string profile_table(const ProfileSummary& summary) {
  const std::vector<ProfileRow> rows = summary.profile->rows(0, summary.workers);
  const double workers = static_cast<double>(summary.workers), whole = workers_time(summary);
  std::string text =
      fmt::format("profile of {} step{}: {} x {} worker{}\n", summary.steps, summary.steps == 1 ? "" : "s",
                  time(summary.seconds), summary.workers, summary.workers == 1 ? "" : "s");
  if (summary.peak_gflops > 0) {
    text += fmt::format("limits of a worker: {:.1f} GFLOPS (FMA peak), {:.1f} GB/s (copy from and to memory)\n",
                        summary.peak_gflops / workers, summary.copy_gbs / workers);
  }
  text += '\n';
  text += row_of("operation", "share", "total", "average", "min", "max", "count", "rate", "of limit");
  for (const ProfileRow& row : rows) text += line(row, fmt::format("{:.2f} %", 100 * row.total / whole), summary);
  const std::string all = fmt::format("{:.2f} %", 100 * covered(summary));
  text += row_of("sum", all, time(sum_of(rows)), "", "", "", "", "", "");
  const std::vector<ProfileRow> beside = summary.profile->rows(summary.workers, summary.profile->threads());
  if (beside.empty()) return text;
  text += "\ntraining thread, meanwhile:\n";
  for (const ProfileRow& row : beside) text += line(row, "", summary);
  return text;
}

}  // namespace quern::report
