#include "config/run_folder.h"

#include <system_error>

#include "core/error.h"

namespace quern::train {

namespace fs = std::filesystem;

void expect_folder(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_directory(status)) return;
  throw Error("[run] {}: expected the folder of a run, found a file; choose another name", path.string());
}

RunConfig read_config(const fs::path& folder) {
  expect_folder(folder);
  if (!fs::exists(folder / kConfigFile)) {
    throw Error("[run] {}: expected a run with a {}, found none", folder.string(), kConfigFile);
  }
  RunConfig config;
  apply_toml_file(config, folder / kConfigFile);
  return config;
}

}  // namespace quern::train
