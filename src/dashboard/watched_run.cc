#include "dashboard/watched_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <utility>

#include "config/history.h"
#include "config/run_folder.h"
#include "core/files.h"
#include "report/panels.h"

namespace quern::dashboard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPanelBytes = size_t{1} << 20;
constexpr size_t kMaxPanels = 64;

// A lock of another machine counts as held for this long after the last line.
constexpr int64_t kSilence = 3600;

// What the view reads of a panel without another check.
bool is_panel(const nlohmann::ordered_json& panel) {
  const auto is_text = [&](const char* name) { return panel.contains(name) && panel[name].is_string(); };
  if (!panel.is_object() || !is_text("id") || !is_text("title") || !is_text("kind")) return false;
  if (panel["kind"] != "lines") return panel["kind"] == "events" || is_text("field");
  if (!panel.contains("series") || !panel["series"].is_array()) return false;
  return std::all_of(panel["series"].begin(), panel["series"].end(), [](const auto& series) {
    return series.is_object() && series.contains("field") && series["field"].is_string();
  });
}

nlohmann::ordered_json checked_panels(const nlohmann::ordered_json& file) {
  nlohmann::ordered_json panels = nlohmann::ordered_json::array();
  if (!file.is_object() || !file.contains("panels") || !file["panels"].is_array()) return panels;
  for (const auto& panel : file["panels"]) {
    if (is_panel(panel) && panels.size() < kMaxPanels) panels.push_back(panel);
  }
  return panels;
}

}  // namespace

std::string_view state_name(RunState state) {
  constexpr std::string_view kNames[] = {"preparing", "training", "finished", "stopped", "interrupted"};
  return kNames[static_cast<size_t>(state)];
}

WatchedRun::WatchedRun(std::string id, fs::path folder, bool expected)
    : id_(std::move(id)), folder_(std::move(folder)), expected_(expected), follower_(folder_ / "metrics.jsonl") {}

WatchedRun::Stamp WatchedRun::stamp_of(const fs::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return {status.st_ino, static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool WatchedRun::refresh(const train::HeldLocks& locks) {
  bool changed = read_config();
  changed = read_panels() || changed;
  changed = follower_.update() || changed;
  RunState state = state_;
  std::error_code code;
  if (fs::exists(folder_, code)) {
    state = state_by(locks.of(folder_));
  } else if (state == RunState::kTraining || !expected_) {
    state = RunState::kInterrupted;  // the directory was removed
  }
  changed = changed || state != state_;
  state_ = state;
  if (changed) ++revision_;
  return changed;
}

// The settings that were read last remain if the file is being replaced or is gone.
bool WatchedRun::read_config() {
  const Stamp stamp = stamp_of(folder_ / train::kConfigFile);
  if (stamp == config_stamp_ || (stamp == Stamp{} && !parts_.empty())) return false;
  config_stamp_ = stamp;
  try {
    config_ = train::read_config(folder_);
    problem_.clear();
  } catch (const std::exception& error) {
    problem_ = error.what();
    return true;
  }
  parts_.clear();
  uint64_t tokens = 0;
  for (uint64_t first = 1;;) {
    const train::RunConfig config = train::config_at(config_, first);
    const uint64_t per_step = config.sequences_per_step() * config.model.context;
    parts_.push_back({first, tokens, per_step});
    const std::optional<uint64_t> next = train::next_change(config_, first);
    if (!next) break;
    tokens += (*next - first) * per_step;
    first = *next;
  }
  if (!has_panels_) panels_ = report::panels_of(config_, {});
  return true;
}

// A run of an older version has none; its panels are those of its settings.
bool WatchedRun::read_panels() {
  const fs::path file = folder_ / report::kPanelsFile;
  const Stamp stamp = stamp_of(file);
  if (stamp == panels_stamp_ || stamp == Stamp{}) return false;
  panels_stamp_ = stamp;
  try {
    nlohmann::ordered_json panels = checked_panels(parse_ordered_json(read_file(file, kMaxPanelBytes)));
    if (panels.empty()) return false;
    panels_ = std::move(panels);
    has_panels_ = true;
  } catch (const std::exception&) {
    return false;  // being replaced, or not readable: those of the settings remain
  }
  return true;
}

RunState WatchedRun::state_by(train::LockStatus lock) const {
  const RunData& data = follower_.data();
  const bool silent = std::time(nullptr) - stamp_of(folder_ / "metrics.jsonl").changed / 1'000'000'000 > kSilence;
  const bool held = lock == train::LockStatus::kHeld || (lock == train::LockStatus::kElsewhere && !silent);
  if (held) return data.end() || (data.step() == 0 && !data.start()) ? RunState::kPreparing : RunState::kTraining;
  if (data.end()) return data.end()->finished ? RunState::kFinished : RunState::kStopped;
  if (!parts_.empty() && data.step() >= config_.train.steps) return RunState::kFinished;
  if (data.start()) return RunState::kInterrupted;
  if (expected_ && data.lines() == 0) return RunState::kPreparing;
  return lock == train::LockStatus::kNone ? RunState::kStopped : RunState::kInterrupted;  // of an older version
}

std::optional<double> WatchedRun::seconds_left() const {
  if (state_ != RunState::kTraining || data().step() >= config_.train.steps || data().step() == 0) return std::nullopt;
  const auto left = static_cast<double>(config_.train.steps - data().step());
  if (const auto played = data().field("selfplay.seconds")) {
    const auto last = data().table(*played).last(played->column);
    if (!last || last->step == 0) return std::nullopt;
    return left * static_cast<double>(last->value) / static_cast<double>(last->step);
  }
  const auto field = data().field("loss");
  const double per_step = field ? data().table(*field).seconds_per_step() : 0;
  return per_step > 0 ? std::optional(left * per_step) : std::nullopt;
}

uint64_t WatchedRun::tokens_until(uint64_t step) const {
  if (parts_.empty()) return 0;
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), step,
                                      [](uint64_t value, const Part& part) { return value < part.first_step; });
  if (after == parts_.begin()) return 0;
  const Part& part = *(after - 1);
  return part.tokens_before + (step + 1 - part.first_step) * part.tokens_per_step;
}

}  // namespace quern::dashboard
