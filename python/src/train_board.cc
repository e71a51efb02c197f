// quern.train_board(): trains a board network on positions of the caller's own actors.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "api/run_selfplay.h"
#include "arguments.h"
#include "board_model.h"
#include "core/error.h"
#include "learn/settings.h"
#include "numbers.h"
#include "python_game.h"
#include "replay_buffer.h"
#include "selfplay/rows.h"
#include "selfplay_docs.h"
#include "texts.h"
#include "training_call.h"

namespace quern::python {
namespace {

using train::RunConfig;

// The arguments of train_board().
struct Request {
  py::object buffer;
  py::object steps, rate, batch, threads, seed;
  py::object symmetries;
  py::object publish, publish_interval;
  py::object config, set;
  TrainingCall call;
};

// What the buffer has positions of.
games::GameSpec spec_of(const replay::ReplayBuffer& buffer) {
  const std::vector<replay::Column>& columns = buffer.schema().columns();
  std::string found;
  for (const replay::Column& column : columns) {
    found += (found.empty() ? "" : ", ") + column.name + " " + column.description();
  }
  if (columns.size() != 3 || columns[0].shape.size() != 3 || columns[1].shape.size() != 1) {
    throw Error(
        "[train_board] buffer: expected the columns planes float32 (P, R, C), policy float32 (A,) and outcome float32 "
        "(3,), in this order, found {}",
        found);
  }
  const std::vector<size_t>& planes = columns[0].shape;
  games::GameSpec spec{.name = std::string(train::kOwnPositions),
                       .rows = planes[1],
                       .columns = planes[2],
                       .planes = planes[0],
                       .actions = columns[1].shape[0],
                       .max_moves = 0};
  selfplay::expect_rows_of(spec, buffer);
  return spec;
}

void apply(RunConfig& config, const Request& request) {
  apply_settings(config, request.config, request.set);
  apply_argument(config, "train.steps", request.steps, "steps");
  apply_argument(config, "optimizer.rate", request.rate, "rate");
  apply_argument(config, "train.batch", request.batch, "batch");
  apply_argument(config, "train.seed", request.seed, "seed");
  apply_argument(config, "selfplay.generation_steps", request.publish_interval, "publish_interval");
  if (!request.threads.is_none()) config.train.threads = threads_from(request.threads);
}

TrainResult train_board_run(const Request& request) {
  check_call(request.call, "train_board");
  if (!request.publish.is_none() && PyCallable_Check(request.publish.ptr()) == 0) {
    throw Error("[train_board] publish: expected a function, found {}", shown(request.publish));
  }
  if (!py::isinstance<PyReplay>(request.buffer)) {
    throw Error("[train_board] buffer: expected a ReplayBuffer, found {}", shown(request.buffer));
  }
  PyReplay& replay = request.buffer.cast<PyReplay&>();
  const games::GameShape shape(spec_of(replay.buffer), symmetries_from(request.symmetries, "[train_board] symmetries"));
  games::check(shape, "[train_board]");
  RunConfig preset = train::positions_preset(shape.spec().squares());
  preset.selfplay.sizes = learn::sizes_text(shape.spec());
  const TrainOptions named{.out = request.call.out, .resume = request.call.resume};
  const RunConfig config = api::selfplay_config(named, preset, [&](RunConfig& c) { apply(c, request); });
  const std::filesystem::path folder = std::filesystem::absolute(request.call.out);
  learn::OwnRows rows{shape, replay.buffer};
  uint64_t step = 0;
  if (!request.publish.is_none()) {
    rows.publish = [&](std::shared_ptr<const learn::Network> network) {
      const py::gil_scoped_acquire lock;
      request.publish(std::make_shared<BoardModel>(folder, config, shape.spec(), std::move(network), step,
                                                   std::optional<GameArgument>()));
    };
  }
  return run_call(request.call, [&](TrainOptions options) {
    const auto on_step = options.on_step;
    options.on_step = [&](const Step& now) {
      step = now.step;
      return on_step(now);
    };
    return api::run_selfplay({.options = options, .own = &rows}, config);
  });
}

}  // namespace

void bind_train_board(py::module_& module) {
  const auto none = [](const char* name) { return py::arg(name) = py::none(); };
  module.def(
      "train_board",
      [](py::object buffer, std::filesystem::path out, py::object steps, py::object rate, py::object batch,
         py::object threads, py::object seed, py::object symmetries, py::object publish, py::object publish_interval,
         py::object config, py::object set, bool resume, py::object on_step, py::object progress) {
        return train_board_run({std::move(buffer), std::move(steps), std::move(rate), std::move(batch),
                                std::move(threads), std::move(seed), std::move(symmetries), std::move(publish),
                                std::move(publish_interval), std::move(config), std::move(set),
                                TrainingCall{std::move(out), resume, std::move(on_step), std::move(progress)}});
      },
      kTrainBoardDoc, py::arg("buffer"), py::kw_only(), py::arg("out"), none("steps"), none("rate"), none("batch"),
      none("threads"), none("seed"), none("symmetries"), none("publish"), none("publish_interval"), none("config"),
      none("set"), py::arg("resume") = false, none("on_step"), none("progress"));
}

}  // namespace quern::python
