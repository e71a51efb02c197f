#include "api/run_selfplay.h"

#include <fmt/format.h>

#include <utility>

#include "api/callbacks.h"
#include "api/run_training.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "learn/selfplay_run.h"
#include "learn/settings.h"
#include "report/run_files.h"
#include "run/observers.h"

namespace quern::api {
namespace {

class SelfplayCallbacks final : public Callbacks {
 public:
  explicit SelfplayCallbacks(const SelfplayCall& its_call) : Callbacks(its_call.options), call_(its_call) {}

  void on_selfplay(const train::SelfplayReport& report) override {
    call([&] { report.complete ? complete(report) : progress(report); });
  }
  void on_rating(const train::RatingReport& report) override { elo_ = report.elo; }

  // The caller's rows, with an exception of publish() treated as one of a callback.
  learn::OwnRows guarded(const learn::OwnRows& rows) {
    return {rows.shape, rows.buffer, [this, &rows](std::shared_ptr<const learn::Network> network) {
              call([&] {
                if (rows.publish) rows.publish(std::move(network));
              });
            }};
  }

 private:
  void progress(const train::SelfplayReport& report) {
    if (!call_.options.on_preparing) return;
    const std::string text =
        call_.own != nullptr ? fmt::format("waiting for positions, {} in the buffer", report.rows)
                             : fmt::format("playing generation {}, {} games so far", report.generation, report.games);
    call_.options.on_preparing(text, 0, 0);
  }

  void complete(const train::SelfplayReport& report) {
    if (!call_.on_generation) return;
    const bool more = call_.on_generation({.generation = report.generation,
                                           .step = report.step,
                                           .games = report.games,
                                           .positions = report.rows,
                                           .game_length = report.game_length,
                                           .first_wins = report.first_wins,
                                           .draws = report.draws,
                                           .games_per_s = report.games_per_s,
                                           .seconds = report.seconds,
                                           .elo = elo_});
    if (!more) ask_to_stop();
  }

  const SelfplayCall& call_;
  std::optional<double> elo_;
};

}  // namespace

train::RunConfig selfplay_config(const TrainOptions& options, const train::RunConfig& preset,
                                 const std::function<void(train::RunConfig&)>& apply) {
  const train::RunConfig base = options.resume ? train::read_config(options.out) : preset;
  if (base.selfplay.game != preset.selfplay.game) {
    throw Error("[selfplay] {}: expected a run of {}, found one {}", options.out.string(), preset.selfplay.game,
                base.is_selfplay() ? "of " + base.selfplay.game : "that trains on text");
  }
  return completed(base, [&](train::RunConfig& config) {
    apply(config);
    if (!options.resume) learn::fit_warmup(config);
    config.selfplay.game = preset.selfplay.game;
    config.selfplay.sizes = preset.selfplay.sizes;
  });
}

TrainResult run_selfplay(const SelfplayCall& call, const train::RunConfig& config) {
  const TrainOptions& options = call.options;
  const std::filesystem::path folder = std::filesystem::absolute(options.out);  // a callback may change the directory
  SelfplayCallbacks callbacks(call);
  report::RunFiles files(folder, config);
  train::Observers observers{&files, &callbacks};
  std::optional<learn::OwnRows> own;
  if (call.own != nullptr) own.emplace(callbacks.guarded(*call.own));
  const auto go = options.resume ? learn::resume_selfplay : learn::start_selfplay;
  const train::RunResult run =
      go(config, folder, observers, {.stop = callbacks.stop(), .game = call.game, .own = own ? &*own : nullptr});
  TrainResult result = result_of(run, options.out, folder, callbacks);
  callbacks.rethrow();
  return result;
}

}  // namespace quern::api
