// Settings that changed while a run was under way, and from which step each value was in force.
//
// The settings in force are a pure function of the step, so that a run with a history is as reproducible as one
// without: same history, same bits. RunConfig::history has one entry per change, in the order of its steps. The first
// entry is of step 1 and has the original values of all settings that ever changed; each later entry has those that it
// changed. The config itself has the newest values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace quern::train {

// How a resumed run may deviate from its config.
enum class Changes : uint8_t {
  kFreely,    // does not affect the result; applies to one process and is not recorded
  kRecorded,  // from the next step on, recorded in the history
  kNever,
};
Changes changes_of(std::string_view path);  // of "train.threads"

// Error, naming the first and what to do instead, if settings that must not change differ from those of the run in
// `folder`.
void check_resumable(const RunConfig& run, const RunConfig& wanted, std::string_view folder);

// Whether recorded settings differ.
bool has_changes(const RunConfig& run, const RunConfig& wanted);

// The settings in force at `step`, which counts from 1, without a history. Settings that are never recorded are those
// of `config`.
RunConfig config_at(const RunConfig& config, uint64_t step);

// The first step after `step` with a change; nullopt if there is none.
std::optional<uint64_t> next_change(const RunConfig& config, uint64_t step);

// The run's config with the recorded settings of `wanted` in force from `from_step` on. Changes recorded for later
// steps are in force from there as well: the run has to repeat these steps anyway.
RunConfig with_change(const RunConfig& run, const RunConfig& wanted, uint64_t from_step);

// A change of one setting; the values as TOML.
struct SettingChange {
  std::string path, before, after;
};
struct RecordedChange {
  uint64_t from_step = 1;
  std::vector<SettingChange> settings;
};
// All changes of a run, in order.
std::vector<RecordedChange> recorded_changes(const RunConfig& config);
// "from step 501: train.steps 500 -> 1000, optimizer.rate 0.002 -> 0.001"
std::string to_text(const RecordedChange& change);

// In the order of fields().
void sort_as_printed(std::vector<RunConfig::Setting>& settings);

// Sequences in the first `steps` steps.
uint64_t sequences_until(const RunConfig& config, uint64_t steps);

// Part of validate(): Error if the history is inconsistent.
void check_history(const RunConfig& config);

// Error if the settings are not the newest of the history, which a file changed by hand can cause, or flags.
void check_newest(const RunConfig& config);

}  // namespace quern::train
