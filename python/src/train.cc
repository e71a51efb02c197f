// quern.train(): a run from its first step to its last, or on from where it stopped.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "checkpoint/checkpoint.h"
#include "config.h"
#include "core/error.h"
#include "report/run_files.h"
#include "step_callback.h"
#include "texts.h"
#include "train/load.h"
#include "train/run.h"
#include "train_docs.h"

namespace quern::python {
namespace {

using train::RunConfig;

// The arguments of train().
struct Request {
  py::object data;
  std::filesystem::path out;
  std::optional<Text> preset;
  py::object config, set;
  py::object steps, threads;
  bool resume;
  py::object on_step;
};

struct TrainResult {
  std::filesystem::path path;
  train::RunResult run;
  std::string weights_hash;
};

void apply_argument(RunConfig& config, const char* setting, const py::object& value, std::string_view place) {
  if (value.is_none()) return;
  py::dict settings;
  settings[setting] = value;
  apply_dict(config, settings, place);
}

void apply(RunConfig& config, const Request& request) {
  if (is_mapping(request.config)) {
    apply_dict(config, dict_from(request.config, "[config] config"), "config");
  } else if (!request.config.is_none()) {
    train::apply_toml_file(config, path_from(request.config, "[config] config"));
  }
  if (!request.set.is_none()) apply_dict(config, dict_from(request.set, "[config] set"), "set");
  apply_argument(config, "train.steps", request.steps, "steps");
  if (!request.threads.is_none()) config.train.threads = threads_from(request.threads);
  apply_argument(config, "data.paths", request.data, "data");
}

RunConfig new_config(const Request& request) {
  RunConfig config = train::preset(request.preset ? request.preset->value : "tiny");
  apply(config, request);
  train::settle(config);
  return config;
}

// What is given must be what the run was started with, so that the same call with resume=True goes on.
RunConfig config_to_go_on(const Request& request) {
  const RunConfig started = train::read_config(request.out);
  RunConfig config = request.preset ? train::preset(request.preset->value) : started;
  apply(config, request);
  train::settle(config);
  train::check_goes_on(started, config);
  return config;
}

std::string newest_hash(const std::filesystem::path& folder, train::Observer& observer) {
  const auto newest = train::newest_checkpoint(folder, observer, checkpoint::Parts::kWeights);
  return newest ? checkpoint::weights_hash(newest->model()) : "";
}

// on_step may change the current folder, where a relative path would lead to another run.
TrainResult train_run(const Request& request) {
  const std::filesystem::path folder = std::filesystem::absolute(request.out);
  const RunConfig config = request.resume ? config_to_go_on(request) : new_config(request);
  StepCallback callback(request.on_step);
  TrainResult result{.path = request.out, .run = {}, .weights_hash = {}};
  {
    const py::gil_scoped_release unlocked;
    report::RunFiles files(folder, config);
    train::Observers observers{&files, &callback};
    const auto go = request.resume ? train::resume_run : train::start_run;
    result.run = go(config, folder, observers, callback.stop());
    result.weights_hash = newest_hash(folder, callback);
  }
  callback.raise_again();
  return result;
}

std::string repr(const TrainResult& result) {
  const auto& validation = result.run.validation_loss;
  return fmt::format("<quern.TrainResult {}: {} after step {}, loss {:.4f}, validation loss {}>", result.path.string(),
                     result.run.finished ? "finished" : "stopped", result.run.step, result.run.loss,
                     validation ? fmt::format("{:.4f}", *validation) : "not measured");
}

std::string step_repr(const Step& step) {
  return fmt::format("<quern.Step {} of {}: loss {:.4f}, {:.0f} tokens/s>", step.report.step, step.steps,
                     step.report.loss, step.tokens_per_s());
}

void bind_step(py::module_& module) {
  py::class_<Step>(module, "Step", kStepClassDoc)
      .def_property_readonly(
          "step", [](const Step& self) { return self.report.step; }, kStepStepDoc)
      .def_readonly("steps", &Step::steps, kStepStepsDoc)
      .def_property_readonly(
          "loss", [](const Step& self) { return self.report.loss; }, kStepLossDoc)
      .def_readonly("validation_loss", &Step::validation_loss, kStepValidationLossDoc)
      .def_property_readonly(
          "learning_rate", [](const Step& self) { return self.report.rate; }, kLearningRateDoc)
      .def_property_readonly(
          "gradient_norm", [](const Step& self) { return self.report.gradient_norm; }, kGradientNormDoc)
      .def_property_readonly("skipped", &Step::skipped, kSkippedDoc)
      .def_property_readonly(
          "tokens", [](const Step& self) { return self.report.tokens; }, kTokensDoc)
      .def_property_readonly(
          "seconds", [](const Step& self) { return self.report.seconds; }, kSecondsDoc)
      .def_property_readonly("tokens_per_s", &Step::tokens_per_s, kTokensPerSDoc)
      .def("__repr__", step_repr);
}

void bind_result(py::module_& module) {
  py::class_<TrainResult>(module, "TrainResult", kTrainResultDoc)
      .def_readonly("path", &TrainResult::path, kResultPathDoc)
      .def_property_readonly(
          "step", [](const TrainResult& self) { return self.run.step; }, kResultStepDoc)
      .def_property_readonly(
          "finished", [](const TrainResult& self) { return self.run.finished; }, kFinishedDoc)
      .def_property_readonly(
          "loss", [](const TrainResult& self) { return self.run.loss; }, kResultLossDoc)
      .def_property_readonly(
          "validation_loss", [](const TrainResult& self) { return self.run.validation_loss; }, kResultValidationLossDoc)
      .def_readonly("weights_hash", &TrainResult::weights_hash, kResultWeightsHashDoc)
      .def("__repr__", repr);
}

}  // namespace

void bind_train(py::module_& module) {
  bind_step(module);
  bind_result(module);
  bind_config(module);
  module.def(
      "train",
      [](py::object data, std::filesystem::path out, std::optional<Text> preset, py::object config, py::object set,
         py::object steps, py::object threads, bool resume, py::object on_step) {
        return train_run({std::move(data), std::move(out), std::move(preset), std::move(config), std::move(set),
                          std::move(steps), std::move(threads), resume, std::move(on_step)});
      },
      kTrainDoc, py::arg("data") = py::none(), py::kw_only(), py::arg("out"), py::arg("preset") = py::none(),
      py::arg("config") = py::none(), py::arg("set") = py::none(), py::arg("steps") = py::none(),
      py::arg("threads") = py::none(), py::arg("resume") = false, py::arg("on_step") = py::none());
}

}  // namespace quern::python
