#include "learn/async_actors.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "core/error.h"
#include "core/quick_hash.h"
#include "learn/actor_processes.h"
#include "learn/settings.h"
#include "selfplay/actors.h"
#include "train/plan.h"

namespace quern::learn {
namespace {

class ActorThreads final : public AsyncActors {
 public:
  ActorThreads(const ActorContext& run, std::shared_ptr<const Network> network, uint64_t launches)
      : launches_(launches + 1), actors_(run.game, run.buffer, settings(run.config, launches), {{{0, network}}}) {}

  Totals totals() const override { return Totals::of(actors_.stats()); }
  bool failed() const noexcept override { return actors_.failed(); }
  void look() override { actors_.rethrow_failure(); }
  void publish(std::shared_ptr<const Network> network) override { actors_.publish(std::move(network)); }
  uint64_t launches() const override { return launches_; }

 private:
  static selfplay::ActorSettings settings(const train::RunConfig& config, uint64_t launch) {
    selfplay::ActorSettings settings = actor_settings(config, train::thread_count(config));
    settings.first_game = first_game(launch);
    return settings;
  }

  uint64_t launches_;
  selfplay::Actors actors_;
};

}  // namespace

std::unique_ptr<AsyncActors> start_actors(const ActorContext& run, std::shared_ptr<const Network> network,
                                          uint64_t launches) {
  if (run.config.selfplay.processes == 0) {
    return std::make_unique<ActorThreads>(run, std::move(network), launches);
  }
  return std::make_unique<ActorProcesses>(run, *network, launches);
}

uint64_t first_game(uint64_t launch) {
  constexpr uint64_t kGames = uint64_t{1} << 32;
  if (launch >= selfplay::kMaxGames / kGames) {
    throw Error("[selfplay] expected at most {} starts of actors in a run, found one more; start a new run",
                selfplay::kMaxGames / kGames);
  }
  return launch * kGames;
}

replay::Storage buffer_storage(const train::RunConfig& config, const std::filesystem::path& folder) {
  if (config.selfplay.processes == 0) return replay::Storage::in_private();
  const std::string path = std::filesystem::weakly_canonical(folder).string();
  return replay::Storage::in_shared(fmt::format("selfplay-{:016x}", quick_hash(std::as_bytes(std::span(path)))));
}

void remove_storage(const replay::Storage& storage) {
  if (storage.kind != replay::Storage::Kind::kPrivate) replay::ReplayBuffer::remove(storage);
}

}  // namespace quern::learn
