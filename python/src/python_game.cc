#include "python_game.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/error.h"
#include "games/hash.h"
#include "numbers.h"
#include "texts.h"
#include "words.h"

namespace quern::python {
namespace {

using games::Action;
using games::GameSpec;
using games::Outcome;
using games::Symmetry;

// A value that is computed once, by whichever thread needs it first. Computing needs the GIL, which other threads may
// get meanwhile and compute the same; storing happens without giving it away.
template <typename Value>
class Once {
 public:
  template <typename Compute>
  const Value& get(const Compute& compute) {
    if (!ready_.load(std::memory_order_acquire)) {  // pairs with the release below
      const py::gil_scoped_acquire lock;
      Value computed = compute();
      if (!ready_.load(std::memory_order_relaxed)) {
        value_ = std::move(computed);
        ready_.store(true, std::memory_order_release);
      }
    }
    return value_;
  }

  // Frees it, when nobody needs it any more.
  void clear() { value_ = {}; }

 private:
  Value value_{};
  std::atomic<bool> ready_{false};
};

// Every word passes through a permutation that spreads each bit over all, so that positions which differ in a few bits
// collide by chance only.
uint64_t strong_hash(std::span<const std::byte> bytes) {
  uint64_t hash = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
    hash = games::mix(hash ^ games::mix(word + 1));
  }
  return hash;
}

py::object attribute(const py::object& rules, const char* name) {
  if (!py::hasattr(rules, name)) {
    throw Error("[game] {}: expected a game with {}, found none; see help(quern.Game)", shown(rules), name);
  }
  return rules.attr(name);
}

std::string name_of(const py::object& rules) {
  const py::object name = py::getattr(rules, "name", py::none());
  std::string text = py::isinstance<py::str>(name) ? text_from(name, "[game] name") : std::string();
  if (name.is_none() || name.equal(py::str(""))) text = rules.get_type().attr("__name__").cast<std::string>();
  if (!train::is_game_name(text)) {
    throw Error("[game] name: expected 1 to 64 letters, digits, - and _, found {}", shown(name));
  }
  return text;
}

GameSpec spec_of(const py::object& rules) {
  GameSpec spec{.name = std::string(train::kOwnGamePrefix) + name_of(rules),
                .rows = 0,
                .columns = 0,
                .planes = 0,
                .actions = 0,
                .max_moves = 0};
  const std::string where = fmt::format("[game] {}: ", spec.name.substr(train::kOwnGamePrefix.size()));
  const py::object shape = attribute(rules, "shape");
  if (!(py::isinstance<py::tuple>(shape) || py::isinstance<py::list>(shape)) || py::len(shape) != 3) {
    throw Error("{}shape: expected (planes, rows, columns), found {}", where, shown(shape));
  }
  const py::sequence sizes = shape;
  spec.planes = whole_from(sizes[0], where + "shape", 1, games::kMaxPlanes);
  spec.rows = whole_from(sizes[1], where + "shape", 1, games::kMaxSquares);
  spec.columns = whole_from(sizes[2], where + "shape", 1, games::kMaxSquares);
  spec.actions = whole_from(attribute(rules, "actions"), where + "actions", 1, games::kMaxActions);
  spec.max_moves = whole_from(attribute(rules, "max_moves"), where + "max_moves", 1, games::kLongestGame);
  return spec;
}

}  // namespace

std::vector<Symmetry> symmetries_from(const py::object& list, const std::string& where) {
  std::vector<Symmetry> symmetries;
  const auto numbers = [&](const py::handle& object) {
    std::vector<uint16_t> values;
    for (const py::handle value : py::iter(object)) {
      values.push_back(static_cast<uint16_t>(whole_from(value, where, 0, UINT16_MAX)));
    }
    return values;
  };
  const auto iterable = [](const py::handle& object) { return py::hasattr(object, "__iter__"); };
  if (list.is_none()) return symmetries;
  if (!iterable(list)) throw Error("{}: expected a list, found {}", where, shown(list));
  for (const py::handle item : py::iter(list)) {
    if (!iterable(item) || !py::hasattr(item, "__len__")) {
      throw Error("{}: expected lists of numbers, found {}", where, shown(item));
    }
    const py::list parts(py::reinterpret_borrow<py::object>(item));
    if (parts.size() == 2 && iterable(parts[0]) && iterable(parts[1])) {
      symmetries.push_back({numbers(parts[0]), numbers(parts[1])});
    } else {
      const std::vector<uint16_t> squares = numbers(item);
      symmetries.push_back({squares, squares});
    }
  }
  return symmetries;
}

// Shared by all positions that are this one in the same game. Needs the GIL to be made, not to be freed.
class PythonGame::Node {
 public:
  Node(py::object its_state, size_t its_moves, std::optional<Outcome> its_outcome)
      : state(std::move(its_state)), moves(its_moves), outcome(its_outcome) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // The GIL is taken once for the whole tree below it.
  ~Node() {
    const py::gil_scoped_acquire lock;
    state.release().dec_ref();
    children.clear();
  }

  py::object state;
  const size_t moves;                    // before it
  const std::optional<Outcome> outcome;  // of a game that is over, for the player whose turn it would be
  Once<std::vector<Action>> legal;
  Once<std::vector<float>> planes;
  Once<uint64_t> hash;
  Once<std::vector<std::shared_ptr<Node>>> children;  // after each legal move
};

class PythonGame::State final : public games::Position {
 public:
  State(const PythonGame& game, std::shared_ptr<Node> node) : game_(game), node_(std::move(node)) {}

  std::unique_ptr<Position> clone() const override { return std::make_unique<State>(*this); }
  int player() const override { return static_cast<int>(node_->moves % 2); }
  size_t moves_played() const override { return node_->moves; }
  void legal_actions(std::vector<Action>& out) const override { out = legal(); }
  void play(Action action) override { node_ = after(action); }
  std::optional<Outcome> result_after(Action action) const override {
    const std::optional<Outcome> outcome = after(action)->outcome;
    return outcome ? std::optional(flipped(*outcome)) : std::nullopt;
  }
  bool over() const override { return node_->outcome.has_value(); }
  Outcome outcome() const override { return node_->outcome.value(); }
  void write_planes(std::span<float> out) const override {
    const std::vector<float>& planes = node_->planes.get([this] { return game_.planes_of(*node_); });
    std::ranges::copy(planes, out.begin());
  }
  uint64_t hash() const override {
    return node_->hash.get([this] { return game_.hash_of(*node_); });
  }

  const py::object& state() const { return node_->state; }

 private:
  const std::vector<Action>& legal() const {
    return node_->legal.get([this] { return game_.legal_of(*node_); });
  }

  // A search asks for all moves of a position in turn, so all of them are made when the first one is asked for.
  std::shared_ptr<Node> after(Action action) const {
    const std::vector<Action>& actions = legal();
    const auto& children = node_->children.get([&] {
      std::vector<std::shared_ptr<Node>> made;
      for (const Action legal : actions) {
        made.push_back(game_.make_node(game_.ask("play", node_->state, py::int_(legal)), node_->moves + 1));
      }
      return made;
    });
    return children[static_cast<size_t>(std::ranges::lower_bound(actions, action) - actions.begin())];
  }

  const PythonGame& game_;
  std::shared_ptr<Node> node_;
};

PythonGame::PythonGame(const py::object& rules, games::GameShape shape)
    : Game(shape.spec(), {shape.symmetries().begin(), shape.symmetries().end()}),
      rules_(rules),
      title_(spec().name.substr(train::kOwnGamePrefix.size())),
      has_key_(py::hasattr(rules, "key") && !rules.attr("key").is_none()) {}

// What the object's reference needs.
PythonGame::~PythonGame() {
  const py::gil_scoped_acquire lock;
  rules_.release().dec_ref();
}

std::shared_ptr<const PythonGame> PythonGame::of(const py::object& rules) {
  for (const char* method : {"start", "legal", "play", "result", "planes"}) attribute(rules, method);
  const GameSpec spec = spec_of(rules);
  const std::string where = fmt::format("[game] {}", spec.name.substr(train::kOwnGamePrefix.size()));
  const games::GameShape shape(spec,
                               symmetries_from(py::getattr(rules, "symmetries", py::none()), where + ": symmetries"));
  games::check(shape, where);
  const std::shared_ptr<const PythonGame> game(new PythonGame(rules, shape));
  const std::unique_ptr<games::Position> start = game->start();
  if (start->over()) game->refuse("result", "None for the state that start() returns", "a result");
  std::vector<Action> actions;
  start->legal_actions(actions);
  start->hash();
  std::vector<float> planes(spec.planes * spec.squares());
  start->write_planes(planes);
  return game;
}

void PythonGame::refuse(const char* method, const std::string& expected, const std::string& found) const {
  throw Error("[game] {}: {}(): expected {}, found {}", title_, method, expected, found);
}

namespace {

// The message of an exception, or what can be said of it if its __str__ raises or has no UTF-8.
std::string message_of(const py::error_already_set& error) {
  try {
    return text_from(py::str(error.value()), "message");
  } catch (const std::exception&) {
    return shown(error.value());
  }
}

}  // namespace

template <typename... Arguments>
py::object PythonGame::ask(const char* method, const Arguments&... arguments) const {
  try {
    return rules_.attr(method)(arguments...);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;  // KeyboardInterrupt
    const std::string message =
        in_python_words(fmt::format("[game] {}: {}(): expected it to return, found {}: {}", title_, method,
                                    error.type().attr("__name__").cast<std::string>(), message_of(error)));
    py::raise_from(error, py::module_::import("quern._quern").attr("Error").ptr(), message.c_str());
    throw py::error_already_set();
  }
}

std::shared_ptr<PythonGame::Node> PythonGame::make_node(py::object state, size_t moves) const {
  const py::object result = ask("result", state);
  std::optional<Outcome> outcome;
  if (!result.is_none()) {
    const bool number = is_real(result) && !py::isinstance<py::bool_>(result);
    const double value = number ? PyFloat_AsDouble(result.ptr()) : NAN;
    PyErr_Clear();
    if (value != 1 && value != 0 && value != -1) {
      refuse("result", "None, 1, 0 or -1 for the player to move", shown(result));
    }
    outcome = value > 0 ? Outcome::kWin : value < 0 ? Outcome::kLoss : Outcome::kDraw;
  } else if (moves >= spec().max_moves) {
    refuse("result", fmt::format("a result after at most {} moves (max_moves)", spec().max_moves), "None");
  }
  return std::make_shared<Node>(std::move(state), moves, outcome);
}

Action PythonGame::action_from(const py::handle& object) const {
  const auto number = py::isinstance<py::bool_>(object)
                          ? py::object()
                          : py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (number) {
    const Py_ssize_t value = PyLong_AsSsize_t(number.ptr());
    if (value >= 0 && static_cast<size_t>(value) < spec().actions) return static_cast<Action>(value);
  }
  PyErr_Clear();
  refuse("legal", fmt::format("actions from 0 to {}", spec().actions - 1), shown(object));
}

std::vector<Action> PythonGame::legal_of(const Node& node) const {
  std::vector<Action> actions;
  if (node.outcome) return actions;
  const py::object legal = ask("legal", node.state);
  if (!py::hasattr(legal, "__iter__")) refuse("legal", "a list of actions", shown(legal));
  for (const py::handle action : py::iter(legal)) actions.push_back(action_from(action));
  if (actions.empty()) refuse("legal", "actions, as result() is None", "none");
  std::ranges::sort(actions);
  const auto twice = std::ranges::adjacent_find(actions);
  if (twice != actions.end()) refuse("legal", "each action once", fmt::format("{} twice", *twice));
  return actions;
}

std::vector<float> PythonGame::planes_of(const Node& node) const {
  const GameSpec& game = spec();
  const std::string expected =
      fmt::format("a float32 array of shape ({}, {}, {})", game.planes, game.rows, game.columns);
  const py::object returned = ask("planes", node.state);
  if (!py::isinstance<py::array>(returned)) refuse("planes", expected, shown(returned));
  const py::array array = returned;
  const bool fits = array.dtype().equal(py::dtype::of<float>()) && array.ndim() == 3 &&
                    std::cmp_equal(array.shape(0), game.planes) && std::cmp_equal(array.shape(1), game.rows) &&
                    std::cmp_equal(array.shape(2), game.columns);
  if (!fits) {
    refuse("planes", expected,
           fmt::format("{} of shape {}", py::str(array.dtype()).cast<std::string>(),
                       py::str(array.attr("shape")).cast<std::string>()));
  }
  const auto values = py::array_t<float, py::array::c_style | py::array::forcecast>::ensure(array);
  std::vector<float> planes(values.data(), values.data() + values.size());
  const auto strange = std::ranges::find_if(planes, [](float x) { return !std::isfinite(x); });
  if (strange != planes.end()) refuse("planes", "finite numbers", fmt::format("{}", *strange));
  return planes;
}

// Of key(), which is text, bytes or a number; without it, of planes and legal moves, which are all that a network and
// a search see.
uint64_t PythonGame::hash_of(Node& node) const {
  if (has_key_) {
    const py::object key = ask("key", node.state);
    std::string text;
    if (PyBytes_Check(key.ptr()) != 0) {
      text = 'b' + key.cast<std::string>();
    } else if (py::isinstance<py::str>(key) || (PyLong_Check(key.ptr()) != 0)) {
      text = (py::isinstance<py::str>(key) ? 's' : 'i') + py::repr(key).cast<std::string>();
    } else {
      refuse("key", "bytes, a str or an int", shown(key));
    }
    return strong_hash(std::as_bytes(std::span(text)));
  }
  const std::vector<float>& planes = node.planes.get([&] { return planes_of(node); });
  const std::vector<Action>& legal = node.legal.get([&] { return legal_of(node); });
  std::vector<std::byte> bytes(planes.size() * sizeof(float) + legal.size() * sizeof(Action));
  std::memcpy(bytes.data(), planes.data(), planes.size() * sizeof(float));
  std::memcpy(bytes.data() + planes.size() * sizeof(float), legal.data(), legal.size() * sizeof(Action));
  return strong_hash(bytes);
}

std::unique_ptr<games::Position> PythonGame::start() const {
  const py::gil_scoped_acquire lock;
  return std::make_unique<State>(*this, make_node(ask("start"), 0));
}

std::unique_ptr<games::Position> PythonGame::position_of(const py::object& state) const {
  return std::make_unique<State>(*this, make_node(state, 0));
}

std::string PythonGame::draw(const games::Position& position) const {
  const py::gil_scoped_acquire lock;
  const py::object& state = static_cast<const State&>(position).state();
  return py::str(py::hasattr(rules_, "draw") ? ask("draw", state) : py::object(py::str(state))).cast<std::string>();
}

std::string PythonGame::action_text(const games::Position&, Action action) const { return std::to_string(action); }

std::string PythonGame::position_text(const games::Position&) const {
  throw Error("[game] {}: positions of a game that is written in Python have no text", title_);
}

std::unique_ptr<games::Position> PythonGame::parse_position(std::string_view) const {
  throw Error("[game] {}: positions of a game that is written in Python have no text", title_);
}

Action PythonGame::parse_action(const games::Position&, std::string_view) const {
  throw Error("[game] {}: moves of a game that is written in Python have no text", title_);
}

}  // namespace quern::python
