// quern.selfplay(): learns a game, of the library or of the caller, by playing against itself.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <string>
#include <utility>

#include "api/run_selfplay.h"
#include "arguments.h"
#include "core/error.h"
#include "games.h"
#include "learn/settings.h"
#include "numbers.h"
#include "selfplay_docs.h"
#include "texts.h"
#include "training_call.h"

namespace quern::python {
namespace {

using api::Generation;
using train::RunConfig;

// The arguments of selfplay().
struct Request {
  py::object game;
  py::object steps, threads, config, set;
  py::object on_generation;
  TrainingCall call;
};

void apply(RunConfig& config, const Request& request) {
  apply_settings(config, request.config, request.set);
  apply_argument(config, "train.steps", request.steps, "steps");
  if (!request.threads.is_none()) config.train.threads = threads_from(request.threads);
}

RunConfig preset_of(const GameArgument& game) {
  const games::GameSpec& spec = game.rules->spec();
  if (!game.own) return train::selfplay_preset(spec.name);
  RunConfig config =
      train::own_game_preset(std::string_view(spec.name).substr(train::kOwnGamePrefix.size()),
                             {.squares = spec.squares(), .actions = spec.actions, .max_moves = spec.max_moves});
  config.selfplay.sizes = learn::sizes_text(spec);
  return config;
}

void check_callback(const py::object& callback, const char* name) {
  if (callback.is_none() || PyCallable_Check(callback.ptr()) != 0) return;
  throw Error("[selfplay] {}: expected a function, found {}", name, shown(callback));
}

TrainResult selfplay_run(const Request& request) {
  check_call(request.call, "selfplay");
  check_callback(request.on_generation, "on_generation");
  const GameArgument game = game_from(request.game);
  const TrainOptions named{.out = request.call.out, .resume = request.call.resume};
  const RunConfig config = api::selfplay_config(named, preset_of(game), [&](RunConfig& c) { apply(c, request); });
  return run_call(request.call, [&](const TrainOptions& options) {
    api::SelfplayCall call{.options = options, .game = game.own ? game.rules.get() : nullptr};
    if (!request.on_generation.is_none()) {
      call.on_generation = [&](const Generation& generation) {
        const py::gil_scoped_acquire lock;
        return goes_on(request.on_generation, py::cast(generation));
      };
    }
    return api::run_selfplay(call, config);
  });
}

std::string repr(const Generation& self) {
  return fmt::format("<quern.Generation {}: step {}, {} games, {} positions>", self.generation, self.step, self.games,
                     self.positions);
}

void bind_generation(py::module_& module) {
  py::class_<Generation>(module, "Generation", kGenerationDoc)
      .def_readonly("generation", &Generation::generation, kGenerationNumberDoc)
      .def_readonly("step", &Generation::step, kGenerationStepDoc)
      .def_readonly("games", &Generation::games, kGenerationGamesDoc)
      .def_readonly("positions", &Generation::positions, kGenerationPositionsDoc)
      .def_readonly("game_length", &Generation::game_length, kGameLengthDoc)
      .def_readonly("first_wins", &Generation::first_wins, kFirstWinsDoc)
      .def_readonly("draws", &Generation::draws, kGenerationDrawsDoc)
      .def_readonly("games_per_s", &Generation::games_per_s, kGamesPerSDoc)
      .def_readonly("seconds", &Generation::seconds, kGenerationSecondsDoc)
      .def_readonly("elo", &Generation::elo, kEloDoc)
      .def("__repr__", repr);
}

}  // namespace

void bind_selfplay(py::module_& module) {
  bind_generation(module);
  module.def(
      "selfplay",
      [](py::object game, std::filesystem::path out, py::object steps, py::object threads, py::object config,
         py::object set, bool resume, py::object on_step, py::object on_generation, py::object progress) {
        return selfplay_run({std::move(game), std::move(steps), std::move(threads), std::move(config), std::move(set),
                             std::move(on_generation),
                             TrainingCall{std::move(out), resume, std::move(on_step), std::move(progress)}});
      },
      kSelfplayDoc, py::arg("game"), py::kw_only(), py::arg("out"), py::arg("steps") = py::none(),
      py::arg("threads") = py::none(), py::arg("config") = py::none(), py::arg("set") = py::none(),
      py::arg("resume") = false, py::arg("on_step") = py::none(), py::arg("on_generation") = py::none(),
      py::arg("progress") = py::none());
}

}  // namespace quern::python
