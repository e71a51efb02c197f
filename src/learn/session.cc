#include "learn/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/process_memory.h"
#include "learn/settings.h"
#include "selfplay/actors.h"
#include "selfplay/arena.h"
#include "selfplay/rows.h"

namespace quern::learn {
namespace {

constexpr double kReportEvery = 0.25;  // seconds

// Asynchronous: how far rows and samples may run ahead of each other, in batches.
constexpr double kSlackBatches = 8;

replay::ReplayBuffer make_buffer(const train::RunConfig& config, const games::GameShape& game,
                                 const replay::Storage& storage) {
  const train::RunConfig::Selfplay& play = config.selfplay;
  replay::RateLimit limit;
  if (!play.synchronous) {
    const uint64_t batch = config.sequences_per_step();
    limit = {.samples_per_insert = play.samples_per_row,
             .minimum = std::min(batch, play.rows),
             .slack = kSlackBatches * static_cast<double>(batch)};
  }
  remove_storage(storage);  // of an earlier process that was killed
  return replay::ReplayBuffer::create(selfplay::row_schema(game.spec()), {.capacity = play.rows, .limit = limit},
                                      storage);
}

// Random moves that make the games of a match differ.
size_t opening_moves(const games::GameSpec& game) { return std::clamp<size_t>(game.max_moves / 20, 1, 4); }

std::vector<selfplay::VersionedModel> models_of(const std::vector<VersionedNetwork>& versions) {
  std::vector<selfplay::VersionedModel> models;
  for (const VersionedNetwork& version : versions) models.push_back({version.version, version.network});
  return models;
}

}  // namespace

Session::Session(const RunContext& run, const train::RunConfig& config, uint64_t last_step,
                 const checkpoint::Checkpoint* saved)
    : run_(run),
      config_(config),
      last_step_(last_step),
      made_(run.own != nullptr ? std::nullopt
                               : std::optional(make_buffer(config, run.shape, buffer_storage(config, run.folder)))),
      buffer_(run.own != nullptr ? run.own->buffer : *made_),
      learner_(config, run.shape, buffer_, state_, config.selfplay.synchronous ? nullptr : &ahead_),
      health_(learner_.model().parameters()) {
  if (saved != nullptr) {
    progress_ = load_checkpoint(*saved, learner_, made_ ? &*made_ : nullptr);
    state_ = saved->state();
    saved_step_ = state_.step;
    learner_.resume();
  } else {
    state_.seed = config.train.seed;
    state_.precision = train::precision_name(config.train.precision);
    learner_.begin(config.train.seed);
  }
  const bool complete = state_.step % config_.selfplay.generation_steps == 0;
  if (complete || !synchronous()) progress_.versions.push_back({generation(), learner_.network()});
  if (progress_.rated.network == nullptr) progress_.rated.network = learner_.network();
  first_step_ = state_.step;
  started_ = seconds_now();
  before_ = totals();
}

Session::~Session() {
  ahead_.close();
  remove_storage(buffer_storage(config_, run_.folder));
}

train::RunStart Session::start_report(uint64_t steps) {
  const train::RunConfig::Selfplay& play = config_.selfplay;
  std::string game = fmt::format("{}: {} simulations a move in {:.0f} % of the moves, {} in the others", play.game,
                                 play.simulations, 100 * play.full_share, play.cheap_simulations);
  if (run_.own != nullptr) {
    game = fmt::format("{}: {}, {} of them a step, from a replay buffer that others fill", play.game, play.sizes,
                       config_.sequences_per_step());
  } else if (play.synchronous) {
    game += fmt::format("; generations of {} games and {} steps of {} positions", play.generation_games,
                        play.generation_steps, config_.sequences_per_step());
  } else {
    game += fmt::format("; asynchronous, {} positions a step, each position used about {} times",
                        config_.sequences_per_step(), play.samples_per_row);
  }
  return {.first_step = state_.step + 1,
          .steps = steps,
          .incidents = state_.incidents,
          .parameters = learner_.model().parameters().count(),
          .trainable = learner_.model().parameters().trainable_count(),
          .game = std::move(game),
          .flops_per_token = learner_.model().activations().training_flops(config_.model.context, 1),
          .loss_parts = learner_.model().loss_parts(),
          .plan = &learner_.plan()};
}

void Session::play() {
  if (synchronous()) {
    play_synchronous();
  } else {
    play_asynchronous();
  }
}

void Session::play_synchronous() {
  // A generation that was trained in part, when a run stopped or was extended: its games are in the buffer.
  if (state_.step % config_.selfplay.generation_steps != 0 && !train_generation()) return;
  if (finished()) return save();
  selfplay::ActorSettings settings = actor_settings(config_, learner_.plan().threads);
  settings.first_game = version() * settings.games_per_generation;
  selfplay::Actors actors(*run_.game, buffer_, settings, models_of(progress_.versions));
  played_ = [&actors] { return Totals::of(actors.stats()); };
  const auto look = [this] {
    if (stopped()) throw Stopped();
    report_now_and_then();
  };
  try {
    while (!finished()) {
      actors.await_generation(generation(), look);
      if (!train_generation()) break;
      if (!finished()) actors.publish(progress_.versions.back().network);
    }
  } catch (const Stopped&) {
    // Between two generations: the run resumes from its last checkpoint.
  }
  played_ = {};
}

// Trains on the generation that is in the buffer, and saves. False if the run was asked to stop before its last step.
bool Session::train_generation() {
  const uint64_t end = std::min(last_step_, (generation() + 1) * config_.selfplay.generation_steps);
  while (state_.step < end && !stopped()) train_step();
  learner_.release();
  if (state_.step < end) {
    // Before its first step there is nothing new to save, and the buffer is not that of the step before any more.
    if (state_.step % config_.selfplay.generation_steps != 0) save();
    return false;
  }
  end_generation();
  return true;
}

void Session::end_generation() {
  if (state_.step % config_.selfplay.generation_steps == 0 || !synchronous()) publish_version();
  report(true);
  const uint64_t interval = config_.selfplay.rating_interval;
  if (finished() || (interval > 0 && generation() % interval == 0)) rate();
  const uint64_t due = config_.checkpoint.interval;
  const uint64_t last = saved_step_.value_or(first_step_);
  if (finished() || stopped() || (due > 0 && state_.step / due > last / due)) save();
}

// The weights of the learner become the next version; those that no game will need go.
void Session::publish_version() {
  std::vector<VersionedNetwork>& versions = progress_.versions;
  versions.push_back({generation(), learner_.network()});
  const size_t keep = synchronous() ? config_.selfplay.lag + 1 : 1;
  if (versions.size() > keep) versions.erase(versions.begin(), versions.end() - static_cast<ptrdiff_t>(keep));
}

void Session::play_asynchronous() {
  const std::shared_ptr<const Network> network = progress_.versions.back().network;
  if (run_.own != nullptr) {
    actors_ = std::make_unique<OwnActors>(*run_.own, network);
  } else {
    actors_ = start_actors({.config = config_,
                            .folder = run_.folder,
                            .game = *run_.game,
                            .buffer = buffer_,
                            .command = run_.actor_command,
                            .warn = [this](const std::string& text) { run_.observer.on_warning(text); }},
                           network, progress_.launches);
  }
  progress_.launches = actors_->launches();
  played_ = [this] { return actors_->totals(); };
  const auto look = [this] {
    if (stopped()) throw Stopped();
    actors_->look();
    progress_.launches = actors_->launches();
    report_now_and_then();
  };
  try {
    while (!finished() && !stopped()) {
      await_rows(look);
      train_step();
      if (state_.step % config_.selfplay.generation_steps != 0 && !finished()) continue;
      end_generation();
      actors_->publish(progress_.versions.back().network);
    }
  } catch (const Stopped&) {
    actors_->look();  // the step that was waiting for rows did not happen
  }
  ahead_.close();
  if (saved_step_ != state_.step) save();
}

// Here rather than in the reader, so that the thread of the run notices while it waits that it is asked to stop.
void Session::await_rows(const std::function<void()>& look) {
  look();
  while (buffer_.size() < std::max<uint64_t>(buffer_.options().limit.minimum, 1)) {
    look();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (buffer_.options().limit.applies()) {
    buffer_.limiter().admit_samples(config_.sequences_per_step(), {replay::Wait::kForever, look});
  }
  ahead_.begin_step();
}

void Session::train_step() {
  train::StepReport report = learner_.step();
  if (config_.is_due(config_.log.interval, state_.step)) report.memory = learner_.trainer().memory();
  report_health();
  if (report.trouble != train::Trouble::kNone) handle_trouble(report);
  run_.observer.on_step(report);
  run_.observer.on_step_end(state_.step);
}

// The update of such a step was skipped. The run goes on after it, or ends before it.
void Session::handle_trouble(const train::StepReport& report) {
  const bool stop =
      config_.diagnostics.policy == train::Policy::kStop || state_.incidents >= config_.diagnostics.incident_limit;
  const std::string text =
      fmt::format("step {}: the {} is not as it should be: loss {}, gradient norm {}", report.step,
                  report.trouble == train::Trouble::kGradient ? "gradient" : "loss", report.loss, report.gradient_norm);
  if (!stop) {
    ++state_.incidents;
    run_.observer.on_warning(text + "; its update was skipped");
    return;
  }
  throw Error(
      "[run] {}; the run stopped, and can be resumed from its last checkpoint with other settings, such as a "
      "lower optimizer.rate",
      text);
}

void Session::report_health() {
  const train::HealthReport* health = health_.report(learner_.trainer().context());
  if (health == nullptr) return;
  run_.observer.on_health(*health);
  for (const std::string& warning : health_warnings_.of(*health)) run_.observer.on_warning(warning);
}

Totals Session::totals() const {
  Totals now = progress_.totals;
  if (played_) now = now + played_();
  now.seconds += seconds_now() - started_;
  return now;
}

void Session::report_now_and_then() {
  if (seconds_now() - reported_ >= kReportEvery) report(false);
}

void Session::report(bool complete) {
  reported_ = seconds_now();
  const Totals now = totals(), part = now - before_;
  const auto share = [](uint64_t n, uint64_t of) {
    return of == 0 ? 0.0 : static_cast<double>(n) / static_cast<double>(of);
  };
  const auto rate = [&](uint64_t n) { return part.seconds > 0 ? static_cast<double>(n) / part.seconds : 0.0; };
  const double done = static_cast<double>(state_.step - first_step_);
  const double left = static_cast<double>(last_step_ - state_.step);
  run_.observer.on_selfplay({.step = state_.step,
                             .generation = complete && generation() > 0 ? generation() - 1 : generation(),
                             .complete = complete,
                             .games = now.games,
                             .rows = buffer_.size(),
                             .game_length = share(part.moves, part.games),
                             .first_wins = share(part.first_wins, part.games),
                             .draws = share(part.draws, part.games),
                             .games_per_s = rate(part.games),
                             .moves_per_s = rate(part.moves),
                             .evaluations_per_s = rate(part.evaluations),
                             .seconds = now.seconds,
                             .seconds_left = done > 0 ? (reported_ - started_) / done * left : 0});
  if (complete) before_ = now;
}

// The first network has 0. A score of 0 or 1 counts as half a game less or more, so that the difference is finite.
void Session::rate() {
  if (config_.selfplay.rating_interval == 0 || config_.selfplay.rating_games < 2) return;
  run_.observer.on_preparing("playing against the last rated network", 0, 0);
  const std::shared_ptr<const Network> network = learner_.network();
  const auto player = [&](std::shared_ptr<const Network> model) {
    return selfplay::MatchPlayer{.model = std::move(model),
                                 .simulations = static_cast<uint32_t>(config_.selfplay.cheap_simulations),
                                 .search = search_settings(config_)};
  };
  const selfplay::MatchResult result =
      selfplay::play_match(*run_.game, player(network), player(progress_.rated.network),
                           {.openings = config_.selfplay.rating_games / 2,
                            .opening_moves = opening_moves(run_.shape.spec()),
                            .seed = config_.train.seed,
                            .threads = learner_.plan().threads});
  const double games = static_cast<double>(result.games());
  const double score = std::clamp(result.score(), 0.5 / games, 1 - 0.5 / games);
  progress_.rated = {network, progress_.rated.elo + 400 * std::log10(score / (1 - score))};
  run_.observer.on_rating({.step = state_.step,
                           .generation = generation(),
                           .games = result.games(),
                           .score = result.score(),
                           .elo = progress_.rated.elo});
}

// Of a complete generation, the learner's weights are the newest version. An asynchronous run resumes with those of the
// learner.
void Session::save() {
  Progress saved = progress_;
  saved.totals = totals();
  const bool complete = state_.step % config_.selfplay.generation_steps == 0;
  if ((complete || !synchronous()) && !saved.versions.empty()) saved.versions.pop_back();
  const std::filesystem::path path =
      save_checkpoint(run_.folder, config_, state_, learner_, made_ ? &*made_ : nullptr, saved);
  saved_step_ = state_.step;
  run_.observer.on_checkpoint(state_.step, path);
}

}  // namespace quern::learn
