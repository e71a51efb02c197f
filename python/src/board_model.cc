#include "board_model.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <utility>

#include "arguments.h"
#include "board_docs.h"
#include "checkpoint/tensor_refs.h"
#include "config.h"
#include "core/error.h"
#include "learn/saved_network.h"
#include "learn/settings.h"
#include "numbers.h"
#include "python_game.h"
#include "selfplay/thinker.h"
#include "texts.h"

namespace quern::python {
namespace {

using BoardPtr = std::shared_ptr<BoardModel>;

std::vector<checkpoint::TensorRef> weights_of(const BoardModel& self) {
  const nn::BoardModel& board = self.network->board();
  const std::span<const float> values = board.weights().values();
  return checkpoint::tensor_refs(board.parameters(), {const_cast<float*>(values.data()), values.size()});  // read only
}

py::tuple shape_of(const BoardModel& self) {
  return py::make_tuple(self.spec.planes, self.spec.rows, self.spec.columns);
}

// The array itself or a batch of it, as float32.
py::array planes_from(const BoardModel& self, const py::object& planes) {
  const py::array array = array_from(planes, py::dtype::of<float>(), "[board] planes");
  const games::GameSpec& spec = self.spec;
  const py::ssize_t first = array.ndim() == 4 ? 1 : 0;
  const bool fits = (array.ndim() == 3 || array.ndim() == 4) && std::cmp_equal(array.shape(first), spec.planes) &&
                    std::cmp_equal(array.shape(first + 1), spec.rows) &&
                    std::cmp_equal(array.shape(first + 2), spec.columns);
  if (!fits) {
    throw Error("[board] planes: expected shape ({}, {}, {}), or several of them, found {}", spec.planes, spec.rows,
                spec.columns, py::str(array.attr("shape")).cast<std::string>());
  }
  return array;
}

py::tuple evaluate(const BoardModel& self, const py::object& planes) {
  const py::array_t<float> given = planes_from(self, planes);
  const bool several = given.ndim() == 4;
  const size_t count = several ? static_cast<size_t>(given.shape(0)) : 1;
  const size_t numbers = static_cast<size_t>(given.size());
  const std::vector<float> copy(given.data(), given.data() + numbers);  // others may change it without the GIL
  py::array_t<float> logits =
      several ? py::array_t<float>({count, self.spec.actions}) : py::array_t<float>(self.spec.actions);
  py::array_t<float> outcomes = several ? py::array_t<float>({count, size_t{3}}) : py::array_t<float>(3);
  float* const to_logits = logits.mutable_data();
  float* const to_outcomes = outcomes.mutable_data();
  {
    const py::gil_scoped_release unlocked;
    self.evaluate(count, copy.data(), to_logits, to_outcomes);
  }
  return py::make_tuple(logits, outcomes);
}

std::vector<selfplay::RankedMove> think(const BoardModel& self, const py::object& state,
                                        const py::object& simulations) {
  const uint64_t wanted = whole_from(simulations, "[board] simulations", 0, UINT32_MAX);
  const std::unique_ptr<games::Position> position = position_from(self.rules(), state);
  if (position->over()) throw Error("[board] state: expected one with legal moves, found the end of a game");
  const py::gil_scoped_release unlocked;
  selfplay::Thinker thinker(self.spec, self.network, learn::search_settings(self.config));
  uint64_t evaluations = 0;
  const auto look = [&](const selfplay::Search&) {
    constexpr uint64_t kLookEvery = 64;
    if (++evaluations % kLookEvery == 0) check_signals();
    return false;
  };
  return selfplay::ranked_moves(thinker.think(*position, static_cast<uint32_t>(wanted), look));
}

py::list search(const BoardModel& self, const py::object& state, const py::object& simulations) {
  py::list moves;
  for (const selfplay::RankedMove& move : think(self, state, simulations)) {
    moves.append(py::make_tuple(move.action, move.share, move.value.score()));
  }
  return moves;
}

games::Action best_move(const BoardModel& self, const py::object& state, const py::object& simulations) {
  return think(self, state, simulations).front().action;
}

py::dict state_dict(const BoardModel& self) {
  py::dict arrays;
  for (const checkpoint::TensorRef& tensor : weights_of(self)) {
    arrays[py::str(tensor.name)] = py::array_t<float>(tensor.shape, tensor.values.data());  // copies
  }
  return arrays;
}

std::string weights_hash(const BoardModel& self) {
  const py::gil_scoped_release unlocked;
  return checkpoint::weights_hash(weights_of(self));
}

// For pickle: settings, weights, and the rules if they are not the library's.
py::tuple reduce(const BoardModel& self) {
  const std::span<const float> values = self.network->board().weights().values();
  const py::bytes bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  const py::object rules = self.game && self.game->own ? self.game->object : py::object(py::none());
  return py::make_tuple(py::module_::import("quern").attr("_unpickled_board"),
                        py::make_tuple(self.path.string(), train::to_toml(self.config), bytes, self.step, rules));
}

BoardPtr unpickled(const std::string& path, const std::string& settings, const std::string& weights, uint64_t step,
                   const py::object& rules) {
  train::RunConfig config;
  train::apply_toml(config, settings, "pickle");
  const games::GameSpec spec = learn::recorded_game(config);
  nn::BoardModel model(learn::board_config(config, spec), nn::Packing::for_inference());
  const std::span<float> values = model.weights().values();
  if (weights.size() != values.size_bytes()) {
    throw Error("[board] pickle: expected {} bytes of weights, found {}", values.size_bytes(), weights.size());
  }
  std::memcpy(values.data(), weights.data(), weights.size());
  std::optional<GameArgument> game;
  if (!rules.is_none()) {
    game = game_from(rules);
  } else if (!config.has_own_game() && !config.has_own_actors()) {
    game = game_from(py::str(spec.name));
  }
  return std::make_shared<BoardModel>(path, std::move(config), spec, std::make_shared<learn::Network>(model), step,
                                      std::move(game));
}

// The rules for a run: those that were passed, or the library's. None for a run without them.
std::optional<GameArgument> rules_for(const learn::SavedBoard& board, const py::object& game) {
  const std::string& name = board.spec.name;
  if (game.is_none()) {
    if (board.config.has_own_game() || board.config.has_own_actors()) return std::nullopt;
    return game_from(py::str(name));
  }
  GameArgument given = game_from(game);
  const games::GameSpec& spec = given.rules->spec();
  const bool fits = board.config.has_own_actors()
                        ? spec.planes == board.spec.planes && spec.rows == board.spec.rows &&
                              spec.columns == board.spec.columns && spec.actions == board.spec.actions
                        : spec.name == name && learn::sizes_text(spec) == learn::sizes_text(board.spec);
  if (fits) return given;
  throw Error("[board] game: expected {} ({}), as in {}, found {} ({})", name, learn::sizes_text(board.spec),
              board.folder.string(), spec.name, learn::sizes_text(spec));
}

BoardPtr load_board(const std::filesystem::path& run, const py::object& checkpoint, const py::object& game) {
  std::vector<std::string> warnings;
  std::optional<learn::SavedBoard> board;
  const std::string wanted = checkpoint_from(checkpoint);
  {
    const py::gil_scoped_release unlocked;
    board.emplace(learn::load_board(
        run, [&](const std::string& text) { warnings.push_back(text); }, wanted));
  }
  for (const std::string& warning : warnings) warn(warning);
  std::optional<GameArgument> rules = rules_for(*board, game);
  return std::make_shared<BoardModel>(board->folder, board->config, board->spec, board->network, board->step,
                                      std::move(rules));
}

std::string repr(const BoardModel& self) {
  return fmt::format("<quern.BoardModel {}: {}, step {}, {} parameters>", self.path.string(), self.spec.name, self.step,
                     self.network->board().parameters().count());
}

}  // namespace

BoardModel::BoardModel(std::filesystem::path its_path, train::RunConfig its_config, games::GameSpec its_spec,
                       std::shared_ptr<const learn::Network> its_network, uint64_t its_step,
                       std::optional<GameArgument> its_game)
    : path(std::move(its_path)),
      config(std::move(its_config)),
      spec(std::move(its_spec)),
      network(std::move(its_network)),
      step(its_step),
      game(std::move(its_game)) {}

const GameArgument& BoardModel::rules() const {
  if (game) return *game;
  throw Error("[board] {}: expected the rules of {}, found none; pass them to load_board(run, game=...)", path.string(),
              spec.name);
}

void BoardModel::evaluate(size_t count, const float* planes, float* logits, float* outcomes) const {
  std::unique_ptr<selfplay::Evaluator> evaluator;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      evaluator = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (evaluator == nullptr) evaluator = network->make_evaluator(1);
  evaluator->evaluate(count, planes, logits, outcomes);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(evaluator));
}

void bind_board_model(py::module_& module) {
  py::class_<BoardModel, std::shared_ptr<BoardModel>> board(module, "BoardModel", kBoardModelDoc);
  board
      .def_property_readonly(
          "path", [](const BoardModel& self) { return self.path; }, kBoardPathDoc)
      .def_property_readonly(
          "config", [](const BoardModel& self) { return to_dict(self.config); }, kBoardConfigDoc)
      .def_property_readonly(
          "step", [](const BoardModel& self) { return self.step; }, kBoardStepDoc)
      .def_property_readonly(
          "parameters", [](const BoardModel& self) { return self.network->board().parameters().count(); },
          kBoardParametersDoc)
      .def_property_readonly("shape", shape_of, kBoardShapeDoc)
      .def_property_readonly(
          "actions", [](const BoardModel& self) { return self.spec.actions; }, kBoardActionsDoc)
      .def_property_readonly(
          "game", [](const BoardModel& self) { return self.game ? self.game->object : py::object(py::none()); },
          kBoardGameDoc)
      .def_property_readonly("weights_hash", weights_hash, kBoardHashDoc)
      .def("evaluate", evaluate, kBoardEvaluateDoc, py::arg("planes"))
      .def("search", search, kBoardSearchDoc, py::arg("state"), py::kw_only(), py::arg("simulations") = 100)
      .def("best_move", best_move, kBoardBestMoveDoc, py::arg("state"), py::kw_only(), py::arg("simulations") = 100)
      .def("state_dict", state_dict, kBoardStateDictDoc)
      .def("__reduce__", reduce)
      .def("__repr__", repr);
  module.def("_unpickled_board", unpickled, py::arg("path"), py::arg("settings"), py::arg("weights"), py::arg("step"),
             py::arg("rules"));
  module.def("load_board", load_board, kLoadBoardDoc, py::arg("run"), py::kw_only(), py::arg("checkpoint") = py::none(),
             py::arg("game") = py::none());
}

}  // namespace quern::python
