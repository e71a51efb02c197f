#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/files.h"

namespace quern::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

// Infinity for a checkpoint without a validation loss, or whose state cannot be read.
double validation_loss(const fs::path& path) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  try {
    return read_state(path).state.validation_loss.value_or(kNone);
  } catch (const Error&) {
    return kNone;
  }
}

// Among equal losses, the earliest: longer training without effect is not better.
std::optional<uint64_t> best_of(const fs::path& folder, const std::vector<uint64_t>& steps) {
  std::optional<uint64_t> best;
  double lowest = std::numeric_limits<double>::infinity();
  for (const uint64_t step : steps) {
    const double loss = validation_loss(folder / directory_name(step));
    if (loss < lowest) {
      lowest = loss;
      best = step;
    }
  }
  return best;
}

}  // namespace

std::string directory_name(uint64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

std::optional<uint64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().native();
  uint64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [stop, code] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (code != std::errc() || stop != end || directory_name(step) != name) return std::nullopt;
  return step;
}

std::vector<uint64_t> list_steps(const fs::path& folder) {
  std::vector<uint64_t> steps;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    if (const std::optional<uint64_t> step = step_of(entry->path())) steps.push_back(*step);
  }
  if (code && code != std::errc::no_such_file_or_directory) {
    throw Error("[checkpoint] {}: cannot list: {}", folder.native(), code.message());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<uint64_t> best_step(const fs::path& folder) { return best_of(folder, list_steps(folder)); }

std::optional<Checkpoint> find_newest_valid(const fs::path& folder, const OnInvalid& on_invalid, Parts parts) {
  std::vector<uint64_t> steps = list_steps(folder);
  for (; !steps.empty(); steps.pop_back()) {
    try {
      return Checkpoint(folder / directory_name(steps.back()), parts);
    } catch (const Error& error) {
      if (on_invalid) on_invalid(error.what());
    }
  }
  return std::nullopt;
}

std::vector<uint64_t> remove_old(const fs::path& folder, uint64_t newest, const Retention& retention) {
  std::vector<uint64_t> steps = list_steps(folder);
  std::erase_if(steps, [newest](uint64_t step) { return step > newest; });
  const std::optional<uint64_t> best = retention.keep_best ? best_of(folder, steps) : std::nullopt;
  const size_t keep = std::min(std::max<size_t>(retention.keep, 1), steps.size());
  steps.resize(steps.size() - keep);
  std::erase_if(steps, [best](uint64_t step) { return step == best; });
  std::erase_if(steps, [&](uint64_t step) { return has_foreign_files(folder / directory_name(step)); });
  for (const uint64_t step : steps) remove_directory(folder / directory_name(step));
  return steps;
}

}  // namespace quern::checkpoint
