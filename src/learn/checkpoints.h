// The checkpoints of a run of self-play: those of any run (checkpoint/checkpoint.h), with these files in addition.
//
//   rows.replay                 the replay buffer, unless it is the caller's
//   version-00000012.safetensors  weights that play after it, besides those of the learner
//   rated.safetensors           weights of the last rating
//   selfplay.json               counters
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "evaluate/load.h"
#include "games/game.h"
#include "learn/learner.h"
#include "learn/network.h"
#include "learn/totals.h"
#include "replay/buffer.h"

namespace quern::learn {

struct VersionedNetwork {
  uint64_t version = 0;
  std::shared_ptr<const Network> network;
};

// The network of the last rating, and its strength.
struct Rated {
  std::shared_ptr<const Network> network;  // null before the first rating
  double elo = 0;
};

// What a run continues from, besides its learner and its buffer.
struct Progress {
  Totals totals;
  uint64_t launches = 0;                   // of actor processes, which give games their numbers
  std::vector<VersionedNetwork> versions;  // that play, in their order; see selfplay/actors.h
  Rated rated;
};

// Saves a checkpoint for `state` below the folder of a run, and removes old ones. The buffer, null if there is nothing
// to save of it, may change meanwhile only in a run that is not synchronous.
std::filesystem::path save_checkpoint(const std::filesystem::path& run, const train::RunConfig& config,
                                      const RunState& state, const Learner& learner, const replay::ReplayBuffer* buffer,
                                      const Progress& progress);

// Loads an opened checkpoint into the learner and the buffer, which must be empty or, if the checkpoint has
// no rows, null. The learner has to be resumed.
Progress load_checkpoint(const checkpoint::Checkpoint& saved, const Learner& learner, replay::ReplayBuffer* buffer);

// The text of config.json: what the network is.
std::string network_json(const std::string& game, const nn::BoardConfig& config);

}  // namespace quern::learn
