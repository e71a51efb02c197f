// Games as arguments: those of the library, and those of the caller.
#pragma once

#include <memory>
#include <string>

#include "games/game.h"
#include "module.h"

namespace quern::python {

// quern.BuiltinGame, and a position of it, which never changes.
struct BuiltinGame {
  std::shared_ptr<const games::Game> rules;
};
struct BuiltinPosition {
  std::shared_ptr<const games::Game> rules;
  std::shared_ptr<const games::Position> position;
};

// A game that a caller named or passed.
struct GameArgument {
  std::shared_ptr<const games::Game> rules;
  py::object object;  // BuiltinGame, or that of the caller
  bool own = false;   // the caller's
};

// From a name, a BuiltinGame, or an object with the methods of quern.Game.
GameArgument game_from(const py::object& object);

// A copy of the position that `state` is in this game.
std::unique_ptr<games::Position> position_from(const GameArgument& game, const py::object& state);

}  // namespace quern::python
