#include "config/history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/config_fields.h"
#include "core/error.h"

namespace quern::train {
namespace {

// A part of a run with the same settings, from its first step on.
struct Stage {
  uint64_t from_step;
  RunConfig config;
};

void apply(RunConfig& config, const RunConfig::Change& change) {
  for (const auto& [path, value] : change.settings) {
    apply_setting(config, fmt::format("{}={}", path, value), "history");
  }
}

RunConfig without_history(RunConfig config) {
  config.history.clear();
  return config;
}

std::vector<Stage> stages(const RunConfig& config) {
  std::vector<Stage> parts;
  RunConfig current = without_history(config);
  for (const RunConfig::Change& change : config.history) {
    apply(current, change);
    parts.push_back({change.from_step, current});
  }
  if (parts.empty()) parts.push_back({1, current});
  return parts;
}

// The values of recorded settings that `other` has differently.
std::vector<RunConfig::Setting> differences(const RunConfig& config, const RunConfig& other) {
  std::vector<RunConfig::Setting> found;
  for (const Field& field : fields()) {
    if (changes_of(field.path()) != Changes::kRecorded) continue;
    std::string value = value_text(field, config);
    if (value != value_text(field, other)) found.push_back({field.path(), std::move(value)});
  }
  return found;
}

// Lists are printed with an item per line; a line break within an item is escaped.
std::string on_one_line(std::string text) {
  for (size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) text.replace(at, 3, " ");
  return text;
}

bool sets(const RunConfig::Change& change, std::string_view path) {
  return std::ranges::any_of(change.settings, [&](const RunConfig::Setting& setting) { return setting.path == path; });
}

// The entries for these parts; none for a part that equals the one before.
std::vector<RunConfig::Change> history_of(const std::vector<Stage>& parts) {
  std::vector<RunConfig::Change> history = {{.from_step = 1, .settings = {}}};
  for (size_t i = 1; i < parts.size(); ++i) {
    RunConfig::Change change{parts[i].from_step, differences(parts[i].config, parts[i - 1].config)};
    for (const RunConfig::Setting& original : differences(parts[0].config, parts[i].config)) {
      if (!sets(history[0], original.path)) history[0].settings.push_back(original);
    }
    if (!change.settings.empty()) history.push_back(std::move(change));
  }
  sort_as_printed(history[0].settings);
  if (history.size() == 1) history.clear();
  return history;
}

struct Reason {
  std::string_view path;  // or the beginning of one
  std::string_view why;
  bool from_helps;  // whether a run that starts from this one may change it
};
constexpr std::array<Reason, 17> kReasons = {{
    {"model.", "the weights belong to that model", false},
    {"data.tokenizer", "the weights belong to the run's tokens", false},
    {"data.vocabulary", "the weights belong to the run's tokens", false},
    {"data.", "it decides the data of the run", true},
    {"lora.", "the weights belong to those adapters", true},
    {"train.freeze", "the state of the optimizer belongs to what is trained", true},
    {"optimizer.kind", "the state of the optimizer belongs to its update rule", true},
    {"train.seed", "it decides the order of the data and all random numbers", true},
    {"init.", "the run has started", false},
    {"selfplay.game", "the weights belong to that game", false},
    {"selfplay.sizes", "the weights belong to a game of these sizes", false},
    {"selfplay.synchronous", "it decides the order of games and steps", false},
    {"selfplay.generation_games", "it decides the numbers of all games", false},
    {"selfplay.generation_steps", "it decides which games the run has played", false},
    {"selfplay.lag", "it decides which weights play a game", false},
    {"selfplay.rows", "it decides which positions are in the replay buffer", false},
    {"selfplay.value_weight", "the loss of the run is measured with it", false},
}};

[[noreturn]] void refuse(const std::string& path, const RunConfig::Setting& expected, std::string_view found,
                         std::string_view folder) {
  const auto* reason = std::ranges::find_if(kReasons, [&](const Reason& r) { return path.starts_with(r.path); });
  const std::string_view why = reason != kReasons.end() ? reason->why : "it decides the result from the first step on";
  const std::string instead =
      reason != kReasons.end() && reason->from_helps
          ? fmt::format("start a new run from its weights: quern train --from {} --run NEW", folder)
          : "start a new run";
  throw Error("[config] {}: expected {}, as the run was started with, found {}: {}; {}", path, expected.value, found,
              why, instead);
}

// Error unless step numbers increase from 1 and every step of the run belongs to its part.
void check_steps(const std::vector<RunConfig::Change>& history, const std::vector<Stage>& parts) {
  if (history[0].from_step != 1) {
    throw Error("[config] history: expected from_step = 1 in its first entry, found {}", history[0].from_step);
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const uint64_t step = parts[i].from_step;
    if (step <= parts[i - 1].from_step) {
      throw Error("[config] history: expected increasing from_step, found {} after {}", step, parts[i - 1].from_step);
    }
    const uint64_t before = parts[i - 1].config.train.steps, after = parts[i].config.train.steps;
    if (before < step - 1 || after < step - 1) {
      throw Error("[config] history: from_step {}: expected train.steps of at least {} before and after it, found {}",
                  step, step - 1, std::min(before, after));
    }
  }
}

void check_settings(const std::vector<RunConfig::Change>& history) {
  for (const RunConfig::Change& change : history) {
    for (const auto& [path, value] : change.settings) {
      if (changes_of(path) != Changes::kRecorded) {
        throw Error("[config] history: from_step {}: expected settings that may change during a run, found {}",
                    change.from_step, path);
      }
      if (!sets(history[0], path)) {
        throw Error("[config] history: from_step {}: expected the original value of {} in the first entry, found none",
                    change.from_step, path);
      }
    }
  }
}

}  // namespace

Changes changes_of(std::string_view path) {
  constexpr std::array<std::string_view, 10> kSpeed = {"train.threads",
                                                       "train.recompute",
                                                       "train.memory",
                                                       "train.pin",
                                                       "data.broadcast",
                                                       "selfplay.processes",
                                                       "selfplay.cache",
                                                       "selfplay.games_at_once",
                                                       "selfplay.rating_interval",
                                                       "selfplay.rating_games"};
  if (std::ranges::find(kSpeed, path) != kSpeed.end()) return Changes::kFreely;
  const bool fixed = std::ranges::any_of(kReasons, [&](const Reason& reason) { return path.starts_with(reason.path); });
  constexpr std::array<std::string_view, 5> kExceptions = {"model.dropout", "lora.dropout", "data.paths",
                                                           "data.sources", "data.epochs"};
  const bool exception = std::ranges::find(kExceptions, path) != kExceptions.end();
  return fixed && !exception ? Changes::kNever : Changes::kRecorded;
}

void check_resumable(const RunConfig& run, const RunConfig& wanted, std::string_view folder) {
  for (const Field& field : fields()) {
    const std::string path = field.path(), expected = value_text(field, run), found = value_text(field, wanted);
    if (expected != found && changes_of(path) == Changes::kNever) refuse(path, {path, expected}, found, folder);
  }
  if (run.history != wanted.history) {
    throw Error(
        "[config] history: expected that of {}, found another; resume with a config without [[history]], or replay it "
        "in a new run: quern train --config FILE --run NEW",
        folder);
  }
}

bool has_changes(const RunConfig& run, const RunConfig& wanted) { return !differences(wanted, run).empty(); }

RunConfig config_at(const RunConfig& config, uint64_t step) {
  RunConfig current = without_history(config);
  for (const RunConfig::Change& change : config.history) {
    if (change.from_step <= std::max<uint64_t>(step, 1)) apply(current, change);
  }
  return current;
}

std::optional<uint64_t> next_change(const RunConfig& config, uint64_t step) {
  for (const RunConfig::Change& change : config.history) {
    if (change.from_step > std::max<uint64_t>(step, 1)) return change.from_step;
  }
  return std::nullopt;
}

RunConfig with_change(const RunConfig& run, const RunConfig& wanted, uint64_t from_step) {
  std::vector<Stage> parts = stages(run);
  std::erase_if(parts, [&](const Stage& part) { return part.from_step >= from_step; });
  parts.push_back({from_step, without_history(wanted)});
  RunConfig result = run;
  for (const Field& field : fields()) {
    if (changes_of(field.path()) != Changes::kRecorded) continue;
    apply_setting(result, fmt::format("{}={}", field.path(), value_text(field, wanted)), "history");
  }
  result.history = history_of(parts);
  return result;
}

std::vector<RecordedChange> recorded_changes(const RunConfig& config) {
  std::vector<RecordedChange> changes;
  const std::vector<Stage> parts = stages(config);
  for (size_t i = 1; i < parts.size(); ++i) {
    RecordedChange change{.from_step = parts[i].from_step, .settings = {}};
    const std::vector<RunConfig::Setting> before = differences(parts[i - 1].config, parts[i].config);
    const std::vector<RunConfig::Setting> after = differences(parts[i].config, parts[i - 1].config);
    for (size_t k = 0; k < after.size(); ++k) {
      change.settings.push_back({after[k].path, on_one_line(before[k].value), on_one_line(after[k].value)});
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

std::string to_text(const RecordedChange& change) {
  std::vector<std::string> texts;
  for (const auto& [path, before, after] : change.settings) {
    texts.push_back(fmt::format("{} {} -> {}", path, before, after));
  }
  return fmt::format("from step {}: {}", change.from_step, fmt::join(texts, ", "));
}

void sort_as_printed(std::vector<RunConfig::Setting>& settings) {
  std::ranges::sort(settings, {}, [](const RunConfig::Setting& setting) {
    return std::ranges::find_if(fields(), [&](const Field& field) { return field.path() == setting.path; }) -
           fields().begin();
  });
}

uint64_t sequences_until(const RunConfig& config, uint64_t steps) {
  uint64_t sequences = 0;
  const std::vector<Stage> parts = stages(config);
  for (size_t i = 0; i < parts.size() && parts[i].from_step <= steps; ++i) {
    const uint64_t end = i + 1 < parts.size() ? std::min(parts[i + 1].from_step - 1, steps) : steps;
    sequences += (end - parts[i].from_step + 1) * parts[i].config.sequences_per_step();
  }
  return sequences;
}

void check_history(const RunConfig& config) {
  if (config.history.empty()) return;
  check_settings(config.history);
  const std::vector<Stage> parts = stages(config);
  check_steps(config.history, parts);
  for (const Stage& part : parts) validate_settings(part.config);
}

void check_newest(const RunConfig& config) {
  const std::vector<RunConfig::Setting> newest = differences(stages(config).back().config, config);
  if (newest.empty()) return;
  const std::string& path = newest[0].path;
  throw Error(
      "[config] {}: expected {}, its last value in [[history]], found another; to change it, resume the run with "
      "`--set "
      "{}=VALUE`",
      path, newest[0].value, path);
}

}  // namespace quern::train
