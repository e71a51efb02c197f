// A run that the dashboard shows: reads its directory and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/json.h"
#include "dashboard/follower.h"
#include "run/held_locks.h"

namespace quern::dashboard {

enum class RunState : uint8_t {
  kPreparing,  // somebody holds the lock, and no step was logged yet
  kTraining,
  kFinished,
  kStopped,      // saved, before its last step
  kInterrupted,  // it did not end in an orderly way, and nobody holds its lock
};
std::string_view state_name(RunState state);

class WatchedRun {
 public:
  // `id` names it in requests. `expected`: a process of this program trains there, or will.
  WatchedRun(std::string id, std::filesystem::path folder, bool expected = false);

  // Reads what is new. Returns whether anything has changed; revision() is then a higher one.
  bool refresh(const train::HeldLocks& locks);

  const std::string& id() const { return id_; }
  const std::filesystem::path& folder() const { return folder_; }
  const train::RunConfig& config() const { return config_; }
  const RunData& data() const { return follower_.data(); }
  const nlohmann::ordered_json& panels() const { return panels_; }
  // Why the settings are not known; empty if they are.
  const std::string& problem() const { return problem_; }
  RunState state() const { return state_; }
  uint64_t revision() const { return revision_; }
  // Seconds that the remaining steps will take; nullopt if unknown, or if nobody trains.
  std::optional<double> seconds_left() const;
  // Tokens of all steps up to this one.
  uint64_t tokens_until(uint64_t step) const;

 private:
  // Of a file: what tells that it was replaced.
  struct Stamp {
    uint64_t inode = 0, bytes = 0;
    int64_t changed = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp stamp_of(const std::filesystem::path& file);
  bool read_config();
  bool read_panels();
  RunState state_by(train::LockStatus lock) const;

  std::string id_;
  std::filesystem::path folder_;
  bool expected_;
  Follower follower_;
  train::RunConfig config_;
  nlohmann::ordered_json panels_ = nlohmann::ordered_json::array();
  Stamp config_stamp_, panels_stamp_;
  std::string problem_;
  RunState state_ = RunState::kPreparing;
  uint64_t revision_ = 1;
  bool has_panels_ = false;

  struct Part {
    uint64_t first_step, tokens_before, tokens_per_step;
  };
  std::vector<Part> parts_;
};

}  // namespace quern::dashboard
