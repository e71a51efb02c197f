// A report that is one file: the page with its data in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace quern::dashboard {

struct StaticReportOptions {
  std::vector<std::filesystem::path> runs;  // directories
  std::string version;                      // of the program
  size_t max_bytes = 1'000'000;
};

// The HTML document. Curves get fewer points, and heat maps fewer columns first of all, until it fits into max_bytes,
// or cannot become smaller.
std::string static_report(const StaticReportOptions& options);

// Whether `file` is such a document, so that another may replace it.
bool is_static_report(const std::filesystem::path& file);

}  // namespace quern::dashboard
