#include "selfplay/actors.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "selfplay/expect_between.h"

namespace quern::selfplay {
namespace {

constexpr size_t kMaxWindow = size_t{1} << 20, kMaxThreads = 1024;
constexpr uint64_t kMaxLag = 16;

// Ends a wait for the rate limit of the buffer.
struct StopRequested {};

ActorSettings checked(ActorSettings settings) {
  check(settings.play);
  check(settings.batch);
  expect_between("threads", settings.threads, 1, kMaxThreads);
  expect_between("end_game", settings.end_game, settings.first_game, kMaxGames);
  if (!settings.synchronous) {
    settings.window = 0;
    return settings;
  }
  expect_between("games_per_generation", settings.games_per_generation, 1, uint64_t{1} << 32);
  expect_between("lag", settings.lag, 0, kMaxLag);
  if (settings.first_game % settings.games_per_generation != 0) {
    throw Error("[selfplay] first_game: expected a multiple of games_per_generation ({}), found {}",
                settings.games_per_generation, settings.first_game);
  }
  if (settings.window == 0) {
    const uint64_t generations = std::max<uint64_t>(settings.lag, 1) * settings.games_per_generation;
    settings.window = std::min<uint64_t>(generations + settings.threads * settings.batch.games, kMaxWindow);
  }
  expect_between("window", settings.window, 1, kMaxWindow);
  return settings;
}

void check_models(const ActorSettings& settings, std::span<const VersionedModel> models) {
  if (models.empty()) throw Error("[selfplay] models: expected at least one, found none");
  for (size_t i = 0; i < models.size(); ++i) {
    if (models[i].model == nullptr)
      throw Error("[selfplay] models: expected a model for version {}", models[i].version);
    if (models[i].version == models[0].version + i) continue;
    throw Error("[selfplay] models: expected version {}, found {}", models[0].version + i, models[i].version);
  }
  if (!settings.synchronous) return;
  const uint64_t last = settings.first_game / settings.games_per_generation;
  const uint64_t first = last - std::min(settings.lag, last);
  if (models.front().version <= first && models.back().version == last) return;
  throw Error("[selfplay] models: expected versions {} to {}, found {} to {}", first, last, models.front().version,
              models.back().version);
}

}  // namespace

Actors::Actors(const games::Game& game, replay::ReplayBuffer& buffer, const ActorSettings& settings,
               std::span<const VersionedModel> models)
    : game_(game),
      buffer_(buffer),
      settings_(checked(settings)),
      models_(settings_.synchronous ? settings_.lag + 1 : 1),
      committer_(settings_.first_game, settings_.window,
                 [this](const GameRecord& record) {
                   add_rows(buffer_, record);
                   count(record);
                 }),
      next_game_(settings_.first_game) {
  check_models(settings_, models);
  expect_rows_of(game.spec(), buffer);
  if (settings_.synchronous && buffer.options().limit.samples_per_insert > 0) {
    throw Error("[selfplay] buffer: expected no limit of samples per insert in a synchronous run, found {}",
                buffer.options().limit.samples_per_insert);
  }
  for (const VersionedModel& model : models) models_.publish(model.version, model.model);
  if (settings_.synchronous) committer_.permit((models.back().version + 1) * settings_.games_per_generation);
  try {
    for (size_t i = 0; i < settings_.threads; ++i) {
      running_.fetch_add(1, std::memory_order_relaxed);
      threads_.emplace_back([this] { act(); });
    }
  } catch (const std::exception& error) {
    stop();
    throw Error("[selfplay] expected {} threads, found that the system provides only {}: {}", settings_.threads,
                threads_.size(), error.what());
  }
}

Actors::~Actors() { stop(); }

void Actors::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);  // visible to whoever sees the signal
  progress_.add(1);
}

void Actors::act() noexcept {
  try {
    GameBatch batch(game_, settings_.play, settings_.batch);
    play(batch);
  } catch (const StopRequested&) {
  } catch (...) {
    fail(std::current_exception());
  }
  running_.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in await(): failure_
}

void Actors::fail(std::exception_ptr failure) noexcept {
  if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::move(failure);
  stop();
}

void Actors::play(GameBatch& batch) {
  std::optional<uint64_t> number;  // a game that was taken and not started yet
  BatchCounters before;
  while (!stopped()) {
    const uint32_t seen = progress_.value();
    const bool more = refill(batch, number);
    if (batch.playing() > 0) {
      batch.play_round([this](GameRecord& record) { finish(record); });
      count(batch.counters(), before);
    } else if (!more) {
      return;
    } else if (!stopped()) {
      progress_.await_change(seen);
    }
  }
}

// Starts games until there is no room or the next one has to wait. False if there are no more games to start.
bool Actors::refill(GameBatch& batch, std::optional<uint64_t>& number) {
  while (batch.has_room()) {
    if (!number) number = next_game_.fetch_add(1, std::memory_order_relaxed);
    if (*number >= settings_.end_game) return false;
    const VersionedModel found = model_for(*number);
    if (found.model == nullptr) return true;
    batch.start(settings_.seed, *number, found.version, found.model);
    number.reset();
  }
  return true;
}

// A version that is needed is still kept: game `number` of generation i is not in the buffer, so version i + 1 cannot
// be published, and the oldest of the last lag + 1 versions is i - lag or below.
VersionedModel Actors::model_for(uint64_t number) const {
  if (!settings_.synchronous) return models_.newest();
  if (!committer_.may_start(number)) return {};
  const uint64_t generation = number / settings_.games_per_generation;
  return models_.find(generation - std::min(settings_.lag, generation));
}

void Actors::finish(GameRecord& record) {
  if (settings_.synchronous) {
    committer_.finish(record);
    progress_.add(1);  // after it, not in its callback: a game may only start when committed() has grown
    return;
  }
  const auto look = [this] {
    if (stopped()) throw StopRequested();
  };
  add_rows(buffer_, record, {replay::Wait::kForever, look});
  count(record);
}

void Actors::publish(std::shared_ptr<const Model> model) {
  const uint64_t version = models_.end();
  if (model == nullptr) throw Error("[selfplay] publish: expected a model for version {}", version);
  const uint64_t games = version * settings_.games_per_generation;
  if (settings_.synchronous && committed() < games) {
    throw Error("[selfplay] publish: expected {} games in the buffer before version {}, found {}", games, version,
                committed());
  }
  models_.publish(version, std::move(model));
  if (settings_.synchronous) committer_.permit(games + settings_.games_per_generation);
  progress_.add(1);
}

bool Actors::await_generation(uint64_t generation, const std::function<void()>& look) {
  const uint64_t end = (generation + 1) * settings_.games_per_generation;
  return await([&] { return committed() >= end; }, look);
}

void Actors::await_end(const std::function<void()>& look) {
  await([] { return false; }, look);
}

void Actors::rethrow_failure() {
  if (failed()) await_end();
}

// Polls: a caller waits for seconds, and nobody has to wake it. `running` is read first: what threads did before they
// ended is then seen by reached().
bool Actors::await(const std::function<bool()>& reached, const std::function<void()>& look) {
  constexpr double kLookEvery = 0.05;
  for (double looked = 0;;) {
    const bool ended = running_.load(std::memory_order_acquire) == 0;
    if (ended && failure_ != nullptr) std::rethrow_exception(failure_);
    if (reached()) return true;
    if (ended) return false;
    if (look && seconds_now() - looked >= kLookEvery) {
      look();
      looked = seconds_now();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

void Actors::count(const GameRecord& record) noexcept {
  const auto add = [](std::atomic<uint64_t>& counter, uint64_t n) { counter.fetch_add(n, std::memory_order_relaxed); };
  add(counters_.games, 1);
  add(counters_.moves, record.moves.size() - record.opening);
  add(counters_.rows, record.rows);
  add(counters_.simulations, record.simulations);
  add(counters_.resigned, record.resigned ? 1 : 0);
  add(counters_.wins, record.outcome == games::Outcome::kWin ? 1 : 0);
  add(counters_.draws, record.outcome == games::Outcome::kDraw ? 1 : 0);
}

void Actors::count(const BatchCounters& now, BatchCounters& before) noexcept {
  const auto add = [](std::atomic<uint64_t>& counter, uint64_t n) { counter.fetch_add(n, std::memory_order_relaxed); };
  add(counters_.leaves, now.leaves - before.leaves);
  add(counters_.cached, now.cached - before.cached);
  add(counters_.evaluations, now.evaluations - before.evaluations);
  add(counters_.batches, now.batches - before.batches);
  before = now;
}

ActorStats Actors::stats() const noexcept {
  const auto get = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  const Counters& c = counters_;
  return {.games = get(c.games),
          .moves = get(c.moves),
          .rows = get(c.rows),
          .simulations = get(c.simulations),
          .resigned = get(c.resigned),
          .first_player_wins = get(c.wins),
          .draws = get(c.draws),
          .batches = {get(c.leaves), get(c.cached), get(c.evaluations), get(c.batches)}};
}

}  // namespace quern::selfplay
