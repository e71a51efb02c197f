// Which directories are runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace quern::report {

// Whether `folder` is the directory of a run: other programs have a config.toml as well.
bool is_run(const std::filesystem::path& folder);

// Calls on_run() for the runs in `folder` and below it, or for `folder` itself if it is one, and on_unreadable() for
// directories that cannot be read. Does not look into runs, and follows no symbolic links.
void search_runs(const std::filesystem::path& folder, const std::function<void(const std::filesystem::path&)>& on_run,
                 const std::function<void(const std::filesystem::path&, std::error_code)>& on_unreadable);

// The runs, in order of their names; what cannot be read is left out.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder);

}  // namespace quern::report
