// A game whose rules are an object of the caller's, as the library plays it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "games/game.h"
#include "module.h"

namespace quern::python {

// The object has name, shape, actions, max_moves, symmetries, start(), legal(), play(), result(), planes() and, if it
// likes, key() and draw(); quern.Game of python/quern/_games.py documents them. Whatever it returns is checked, and an
// Error names the game, the method, what was expected and what was found. Exceptions that it raises become the cause of
// such an Error.
//
// Positions are nodes of a tree that copies share: what the object said of a position is asked once. All calls are made
// with the GIL, which is taken for them alone, so the game can be played by any number of threads.
class PythonGame final : public games::Game {
 public:
  // With the GIL. Error if the object is no such game, which includes what it says of the first position.
  static std::shared_ptr<const PythonGame> of(const py::object& rules);
  ~PythonGame() override;

  const py::object& rules() const noexcept { return rules_; }

  std::unique_ptr<games::Position> start() const override;
  // For a state of the caller's, from which as many moves may follow as in a whole game. With the GIL.
  std::unique_ptr<games::Position> position_of(const py::object& state) const;

  std::string draw(const games::Position& position) const override;
  std::string action_text(const games::Position& position, games::Action action) const override;
  // Errors: positions and moves have no text.
  std::string position_text(const games::Position& position) const override;
  std::unique_ptr<games::Position> parse_position(std::string_view text) const override;
  games::Action parse_action(const games::Position& position, std::string_view text) const override;

 private:
  class Node;
  class State;

  PythonGame(const py::object& rules, games::GameShape shape);

  // Calls a method, with the GIL.
  template <typename... Arguments>
  py::object ask(const char* method, const Arguments&... arguments) const;
  [[noreturn]] void refuse(const char* method, const std::string& expected, const std::string& found) const;

  std::shared_ptr<Node> make_node(py::object state, size_t moves) const;
  std::vector<games::Action> legal_of(const Node& node) const;
  std::vector<float> planes_of(const Node& node) const;
  uint64_t hash_of(Node& node) const;
  games::Action action_from(const py::handle& object) const;

  py::object rules_;
  const std::string title_;  // in messages
  bool has_key_ = false;
};

// A list of (squares, actions), or of squares alone where an action is a square. None: no symmetries. Errors begin with
// `where`; games::check() checks the numbers.
std::vector<games::Symmetry> symmetries_from(const py::object& list, const std::string& where);

}  // namespace quern::python
