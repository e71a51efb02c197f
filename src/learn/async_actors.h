// The actors of an asynchronous run, as the learner sees them: threads of its own process, or processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "games/game.h"
#include "learn/network.h"
#include "learn/totals.h"
#include "replay/buffer.h"

namespace quern::learn {

// Called by the learner's thread, except failed().
class AsyncActors {
 public:
  virtual ~AsyncActors() = default;  // stops them, and waits until they have ended

  // By these actors so far. Those of a killed process count up to its last report.
  virtual Totals totals() const = 0;
  // Whether no game will be added any more, because of an error. Any thread.
  virtual bool failed() const noexcept = 0;
  // Throws that error, if there is one, and passes warnings on. Call it often.
  virtual void look() = 0;
  // The weights of the games that start from now on.
  virtual void publish(std::shared_ptr<const Network> network) = 0;
  // How many number ranges of games are used up (see first_game()).
  virtual uint64_t launches() const = 0;
};

struct ActorContext {
  const train::RunConfig& config;
  const std::filesystem::path& folder;  // of the run
  const games::Game& game;
  replay::ReplayBuffer& buffer;             // of buffer_storage()
  const std::vector<std::string>& command;  // as in RunContext
  std::function<void(const std::string&)> warn;
};

// Games are numbered apart for every launch of a process or, with threads, of a session, so that no two draw the same
// random numbers. `launches`: how many were used up before. Everything in the context must outlive the result.
std::unique_ptr<AsyncActors> start_actors(const ActorContext& run, std::shared_ptr<const Network> network,
                                          uint64_t launches);

// The number of the first game of a launch. Error after too many launches.
uint64_t first_game(uint64_t launch);

// Where the rows of a run are: in shared memory if actors are processes.
replay::Storage buffer_storage(const train::RunConfig& config, const std::filesystem::path& folder);
// Removes the name of shared memory; does nothing for private memory.
void remove_storage(const replay::Storage& storage);

}  // namespace quern::learn
