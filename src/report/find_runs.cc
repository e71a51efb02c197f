#include "report/find_runs.h"

#include <algorithm>

#include "config/run_folder.h"
#include "run/run_lock.h"

namespace quern::report {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 8;  // of directories below the given one

using OnRun = std::function<void(const fs::path&)>;
using OnUnreadable = std::function<void(const fs::path&, std::error_code)>;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void search(const fs::path& folder, int depth, const OnRun& on_run, const OnUnreadable& on_unreadable) {
  if (is_run(folder)) return on_run(folder);
  if (depth > kMaxDepth) return;
  std::error_code code, ignored;
  fs::directory_iterator entry(folder, code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
    if (entry->symlink_status(ignored).type() == fs::file_type::directory) {
      search(entry->path(), depth + 1, on_run, on_unreadable);
    }
  }
  if (code) on_unreadable(folder, code);
}

}  // namespace

bool is_run(const fs::path& folder) {
  if (!is_there(folder / train::kConfigFile)) return false;
  return is_there(folder / "metrics.jsonl") || is_there(folder / train::kCheckpointFolder) ||
         is_there(folder / train::kTokenizerFile) || is_there(folder / train::kLockFile);
}

void search_runs(const fs::path& folder, const OnRun& on_run, const OnUnreadable& on_unreadable) {
  search(folder, 0, on_run, on_unreadable);
}

std::vector<fs::path> find_runs(const fs::path& folder) {
  std::vector<fs::path> runs;
  search_runs(
      folder, [&](const fs::path& run) { runs.push_back(run); }, [](const fs::path&, std::error_code) {});
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace quern::report
