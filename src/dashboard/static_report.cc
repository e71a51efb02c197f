#include "dashboard/static_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "dashboard/page.h"
#include "dashboard/view.h"

namespace quern::dashboard {
namespace {

// The beginning of a document, to recognize it by.
constexpr std::string_view kMark = "<!-- quern report -->\n";

// What a reader misses least comes first: columns of heat maps, then points that a screen cannot show anyway.
bool reduce(ViewOptions& options) {
  if (options.heat_columns > 40) {
    options.heat_columns /= 2;
  } else if (options.points > 600) {
    options.points = options.points * 3 / 4;
  } else if (options.heat_columns > 10) {
    options.heat_columns /= 2;
  } else if (options.texts > 20) {
    options.texts /= 2;
  } else if (options.events > 50) {
    options.events /= 2;
  } else if (options.points > 60) {
    options.points = options.points * 3 / 4;
  } else if (options.heat_columns > 0) {
    options.heat_columns = options.heat_columns > 2 ? options.heat_columns / 2 : 0;
  } else if (options.texts > 1) {
    options.texts /= 2;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string static_report(const StaticReportOptions& options) {
  std::vector<std::unique_ptr<WatchedRun>> runs;
  const train::HeldLocks locks;
  for (const auto& folder : options.runs) {
    runs.push_back(std::make_unique<WatchedRun>(fmt::format("{}", runs.size()), folder));
    runs.back()->refresh(locks);
  }
  ViewOptions view;
  std::string html;
  do {
    html = std::string(kMark) + page_html(view_json(runs, view, options.version));
  } while (html.size() > options.max_bytes && reduce(view));
  return html;
}

bool is_static_report(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code)) return false;  // reading a pipe would wait for its writer
  std::ifstream stream(file, std::ios::binary);
  std::string begin(kMark.size(), '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return stream && begin == kMark;
}

}  // namespace quern::dashboard
