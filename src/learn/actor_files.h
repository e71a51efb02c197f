// The directory RUN/actors through which a learner gives settings and weights to its actor processes:
//
//   config.toml                      the settings in force
//   weights-00000012.safetensors     the newest published weights; older ones are removed
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "config/config.h"
#include "learn/network.h"

namespace quern::learn {

std::filesystem::path actor_folder(const std::filesystem::path& run);

// By the learner: creates the directory with the settings, and removes what an earlier process has left there.
void open_actor_folder(const std::filesystem::path& run, const train::RunConfig& config);
// Each file appears complete, under its final name.
void write_weights(const std::filesystem::path& run, uint64_t version, const Network& network);
void remove_actor_folder(const std::filesystem::path& run) noexcept;

// By an actor: the newest version; nullopt if there is none, or none that is newer than `known`.
std::optional<uint64_t> newest_weights(const std::filesystem::path& run, std::optional<uint64_t> known = {});
// Null if the learner has removed them meanwhile, in favour of newer ones.
std::shared_ptr<const Network> read_weights(const std::filesystem::path& run, uint64_t version,
                                            const nn::BoardConfig& config);

}  // namespace quern::learn
