// quern.finetune(): adapts a trained model to conversations.
#include <pybind11/stl.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "api/finetune_config.h"
#include "arguments.h"
#include "finetune_docs.h"
#include "texts.h"
#include "training_call.h"

namespace quern::python {
namespace {

using train::RunConfig;

// The arguments of finetune().
struct Request {
  py::object base, data, chat_template;
  bool full;
  py::object rank, alpha, dropout, targets;
  py::object epochs, steps, rate, batch, context, seed, threads;
  py::object config, set;
  TrainingCall call;
};

void apply(RunConfig& config, const Request& request) {
  apply_settings(config, request.config, request.set);
  apply_argument(config, "lora.rank", request.rank, "rank");
  apply_argument(config, "lora.alpha", request.alpha, "alpha");
  apply_argument(config, "lora.dropout", request.dropout, "dropout");
  apply_argument(config, "lora.targets", request.targets, "targets");
  apply_argument(config, "data.epochs", request.epochs, "epochs");
  apply_argument(config, "train.steps", request.steps, "steps");
  apply_argument(config, "optimizer.rate", request.rate, "rate");
  apply_argument(config, "train.batch", request.batch, "batch");
  apply_argument(config, "model.context", request.context, "context");
  apply_argument(config, "train.seed", request.seed, "seed");
  if (!request.threads.is_none()) config.train.threads = threads_from(request.threads);
}

// One path, or a list of them; none for None.
std::vector<std::filesystem::path> paths_from(const py::object& data) {
  constexpr const char* kWhat = "[finetune] data";
  if (data.is_none()) return {};
  if (!py::isinstance<py::list>(data) && !py::isinstance<py::tuple>(data)) return {path_from(data, kWhat)};
  std::vector<std::filesystem::path> paths;
  for (const py::handle path : data) paths.push_back(path_from(path, kWhat));
  return paths;
}

std::filesystem::path optional_path(const py::object& path, const char* what) {
  return path.is_none() ? std::filesystem::path() : path_from(path, what);
}

TrainResult finetune_run(const Request& request) {
  check_call(request.call, "finetune");
  const FinetuneOptions options{
      .base = optional_path(request.base, "[finetune] base"),
      .data = paths_from(request.data),
      .out = request.call.out,
      .full = request.full,
      .chat_template = optional_path(request.chat_template, "[finetune] chat_template").string(),
      .resume = request.call.resume};
  return run_call(request.call, api::finetune_config(options, [&](RunConfig& found) { apply(found, request); }));
}

}  // namespace

void bind_finetune(py::module_& module) {
  const auto none = [](const char* name) { return py::arg(name) = py::none(); };
  module.def(
      "finetune",
      [](py::object base, py::object data, std::filesystem::path out, py::object chat_template, bool full,
         py::object rank, py::object alpha, py::object dropout, py::object targets, py::object epochs, py::object steps,
         py::object rate, py::object batch, py::object context, py::object seed, py::object threads, py::object config,
         py::object set, bool resume, py::object on_step, py::object progress) {
        return finetune_run({std::move(base), std::move(data), std::move(chat_template), full, std::move(rank),
                             std::move(alpha), std::move(dropout), std::move(targets), std::move(epochs),
                             std::move(steps), std::move(rate), std::move(batch), std::move(context), std::move(seed),
                             std::move(threads), std::move(config), std::move(set),
                             TrainingCall{std::move(out), resume, std::move(on_step), std::move(progress)}});
      },
      kFinetuneDoc, none("base"), none("data"), py::kw_only(), py::arg("out"), none("chat_template"),
      py::arg("full") = false, none("rank"), none("alpha"), none("dropout"), none("targets"), none("epochs"),
      none("steps"), none("rate"), none("batch"), none("context"), none("seed"), none("threads"), none("config"),
      none("set"), py::arg("resume") = false, none("on_step"), none("progress"));
}

}  // namespace quern::python
