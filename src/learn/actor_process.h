// What an actor process does (learn/actor_processes.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "learn/totals.h"

namespace quern::learn {

// Plays games of the run, with one thread, and adds them to its replay buffer, until stopped() is true, which is looked
// at every 50 ms. Calls report() several times a second. Error if there is no run whose learner is waiting for actors.
void run_actor(const std::filesystem::path& run, uint64_t launch, const std::function<bool()>& stopped,
               const std::function<void(const Totals&)>& report);

}  // namespace quern::learn
