#include "evaluate/find_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/text.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_checkpoint(const fs::path& path) { return is_there(path / "state.json") && !is_there(path / kConfigFile); }

// The run of a checkpoint: two directories above it.
fs::path run_of(const fs::path& checkpoint) {
  fs::path path = fs::absolute(checkpoint).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a trailing slash
  const fs::path run = path.parent_path().parent_path();
  if (is_there(run / kConfigFile)) return checkpoint.is_absolute() ? run : run.lexically_proximate(fs::current_path());
  throw Error("[run] {}: expected a checkpoint in the directory of its run, RUN/{}/STEP, found no {} in {}",
              checkpoint.string(), kCheckpointFolder, kConfigFile, run.string());
}

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

[[noreturn]] void refuse(const fs::path& run, std::string_view wanted) {
  const std::vector<uint64_t> steps = checkpoint::list_steps(run / kCheckpointFolder);
  if (steps.empty()) throw Error("[run] {}: expected a checkpoint, found none; train it first", run.string());
  throw Error("[run] {}: checkpoint: expected newest, best, the path of one, or one of the saved steps {}, found {}",
              run.string(), fmt::join(steps, ", "), in_quotes(wanted));
}

fs::path best_of(const fs::path& run) {
  const auto best = checkpoint::best_step(run / kCheckpointFolder);
  if (best) return run / kCheckpointFolder / checkpoint::directory_name(*best);
  const std::vector<uint64_t> steps = checkpoint::list_steps(run / kCheckpointFolder);
  if (steps.empty()) refuse(run, "best");
  throw Error("[run] {}: checkpoint: expected a best one, found no validation loss in the saved steps {}", run.string(),
              fmt::join(steps, ", "));
}

// Where RUN@WANTED has its @; npos for any other name, and for a directory that is named like this.
size_t marker_in(const fs::path& folder) {
  const size_t at = folder.native().rfind('@');
  const bool is_marker = at != std::string::npos && at + 1 < folder.native().size() && !is_there(folder) &&
                         is_there(folder.native().substr(0, at));
  return is_marker ? at : std::string::npos;
}

}  // namespace

CheckpointPath find_checkpoint(const fs::path& folder, std::string_view wanted) {
  if (const size_t at = marker_in(folder); wanted.empty() && at != std::string::npos) {
    return find_checkpoint(folder.native().substr(0, at), std::string_view(folder.native()).substr(at + 1));
  }
  const bool direct = is_checkpoint(folder);
  const fs::path run = direct ? run_of(folder) : folder;
  if (wanted.empty() && direct) return {run, folder};
  if (wanted.empty() || wanted == "newest") return {run, std::nullopt};
  if (wanted == "best") return {run, best_of(run)};
  if (const auto step = number_in(wanted)) {
    const fs::path path = run / kCheckpointFolder / checkpoint::directory_name(*step);
    if (is_there(path)) return {run, path};
    refuse(run, wanted);
  }
  const fs::path path(wanted);
  for (const fs::path& candidate : {path, run / kCheckpointFolder / path}) {
    if (is_checkpoint(candidate)) return {run, candidate};
  }
  refuse(run, wanted);
}

}  // namespace quern::train
