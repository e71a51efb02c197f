#include "config/run_folder.h"

#include <system_error>

#include "core/error.h"
#include "core/files.h"

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

void write_config(const RunConfig& config, const fs::path& folder) {
  const std::string text = to_toml(config);
  if (text.size() > kMaxConfigBytes) {
    throw Error("[run] {}: expected a {} of at most {} bytes, found {}; shorten its [[history]] by starting a new run",
                folder.string(), kConfigFile, kMaxConfigBytes, text.size());
  }
  write_file(folder / kConfigFile, text);
}

}  // namespace quern::train
