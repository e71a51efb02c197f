// quern.game(): the games of the library, with the methods of a quern.Game.
#include "games.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "game_docs.h"
#include "numbers.h"
#include "python_game.h"
#include "texts.h"

namespace quern::python {
namespace {

using games::Action;
using games::Outcome;

const games::Position& position_of(const BuiltinGame& game, const BuiltinPosition& state) {
  if (state.rules->spec().name != game.rules->spec().name) {
    throw Error("[game] {}: expected a position of this game, found one of {}", game.rules->spec().name,
                state.rules->spec().name);
  }
  return *state.position;
}

std::vector<Action> legal(const BuiltinGame& game, const BuiltinPosition& state) {
  std::vector<Action> actions;
  position_of(game, state).legal_actions(actions);
  return actions;
}

BuiltinPosition play(const BuiltinGame& game, const BuiltinPosition& state, const py::object& action) {
  const std::vector<Action> actions = legal(game, state);
  const uint64_t wanted = whole_from(action, fmt::format("[game] {}: action", game.rules->spec().name));
  if (!std::ranges::binary_search(actions, wanted)) {
    throw Error("[game] {}: action: expected {}, found {}", game.rules->spec().name,
                actions.empty() ? "none, because the game is over" : "one of the legal actions", wanted);
  }
  std::shared_ptr<games::Position> next = state.position->clone();
  next->play(static_cast<Action>(wanted));
  return {game.rules, std::move(next)};
}

std::optional<int> result(const BuiltinGame& game, const BuiltinPosition& state) {
  const games::Position& position = position_of(game, state);
  if (!position.over()) return std::nullopt;
  return static_cast<int>(position.outcome()) - static_cast<int>(Outcome::kDraw);
}

py::array_t<float> planes(const BuiltinGame& game, const BuiltinPosition& state) {
  const games::GameSpec& spec = game.rules->spec();
  py::array_t<float> array({spec.planes, spec.rows, spec.columns});
  position_of(game, state).write_planes({array.mutable_data(), static_cast<size_t>(array.size())});
  return array;
}

py::list symmetries(const BuiltinGame& game) {
  py::list list;
  for (const games::Symmetry& symmetry : game.rules->symmetries()) {
    list.append(py::make_tuple(py::cast(symmetry.squares), py::cast(symmetry.actions)));
  }
  return list;
}

void bind_position(py::module_& module) {
  py::class_<BuiltinPosition>(module, "Position", kPositionDoc)
      .def_property_readonly(
          "player", [](const BuiltinPosition& self) { return self.position->player(); }, kPlayerDoc)
      .def_property_readonly(
          "text", [](const BuiltinPosition& self) { return self.rules->position_text(*self.position); },
          kPositionTextDoc)
      .def("__repr__", [](const BuiltinPosition& self) {
        return fmt::format("<quern.Position of {}: {}>", self.rules->spec().name,
                           self.rules->position_text(*self.position));
      });
}

}  // namespace

GameArgument game_from(const py::object& object) {
  if (py::isinstance<py::str>(object)) {
    const BuiltinGame game{games::make_game(text_from(object, "[game] game"))};
    return {game.rules, py::cast(game)};
  }
  if (py::isinstance<BuiltinGame>(object)) return {object.cast<const BuiltinGame&>().rules, object};
  if (object.is_none() || py::isinstance<py::type>(object)) {
    throw Error("[game] game: expected the name of a game or an object with its rules, found {}", shown(object));
  }
  return {PythonGame::of(object), object, true};
}

std::unique_ptr<games::Position> position_from(const GameArgument& game, const py::object& state) {
  if (game.own) return static_cast<const PythonGame&>(*game.rules).position_of(state);
  if (!py::isinstance<BuiltinPosition>(state)) {
    throw Error("[game] {}: expected a position of this game, found {}", game.rules->spec().name, shown(state));
  }
  return position_of({game.rules}, state.cast<const BuiltinPosition&>()).clone();
}

void bind_games(py::module_& module) {
  bind_position(module);
  py::class_<BuiltinGame> game(module, "BuiltinGame", kBuiltinGameDoc);
  game.def_property_readonly(
          "name", [](const BuiltinGame& self) { return self.rules->spec().name; }, kGameNameDoc)
      .def_property_readonly(
          "shape",
          [](const BuiltinGame& self) {
            const games::GameSpec& spec = self.rules->spec();
            return py::make_tuple(spec.planes, spec.rows, spec.columns);
          },
          kGameShapeDoc)
      .def_property_readonly(
          "actions", [](const BuiltinGame& self) { return self.rules->spec().actions; }, kGameActionsDoc)
      .def_property_readonly(
          "max_moves", [](const BuiltinGame& self) { return self.rules->spec().max_moves; }, kMaxMovesDoc)
      .def_property_readonly("symmetries", symmetries, kSymmetriesDoc)
      .def(
          "start",
          [](const BuiltinGame& self) {
            return BuiltinPosition{self.rules, self.rules->start()};
          },
          kStartDoc)
      .def(
          "parse",
          [](const BuiltinGame& self, const Text& text) {
            return BuiltinPosition{self.rules, self.rules->parse_position(text.value)};
          },
          kParseDoc, py::arg("text"))
      .def("legal", legal, kLegalDoc, py::arg("state"))
      .def("play", play, kPlayDoc, py::arg("state"), py::arg("action"))
      .def("result", result, kResultDoc, py::arg("state"))
      .def("planes", planes, kPlanesDoc, py::arg("state"))
      .def(
          "key", [](const BuiltinGame& self, const BuiltinPosition& state) { return position_of(self, state).hash(); },
          kKeyDoc, py::arg("state"))
      .def(
          "draw",
          [](const BuiltinGame& self, const BuiltinPosition& state) {
            return self.rules->draw(position_of(self, state));
          },
          kDrawDoc, py::arg("state"))
      .def(
          "action_text",
          [](const BuiltinGame& self, const BuiltinPosition& state, const py::object& action) {
            const std::vector<Action> actions = legal(self, state);
            const uint64_t wanted = whole_from(action, "[game] action");
            if (!std::ranges::binary_search(actions, wanted)) {
              throw Error("[game] {}: action: expected one of the legal actions, found {}", self.rules->spec().name,
                          wanted);
            }
            return self.rules->action_text(*state.position, static_cast<Action>(wanted));
          },
          kActionTextDoc, py::arg("state"), py::arg("action"))
      .def(
          "parse_action",
          [](const BuiltinGame& self, const BuiltinPosition& state, const Text& text) {
            return self.rules->parse_action(position_of(self, state), text.value);
          },
          kParseActionDoc, py::arg("state"), py::arg("text"))
      .def("__repr__",
           [](const BuiltinGame& self) { return fmt::format("<quern.BuiltinGame {}>", self.rules->spec().name); });
  module.def(
      "game", [](const Text& name) { return BuiltinGame{games::make_game(name.value)}; }, kGameDoc, py::arg("name"));
}

}  // namespace quern::python
