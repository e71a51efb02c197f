// quern.train(): starts or resumes a run.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <optional>
#include <string>

#include "api/run_training.h"
#include "arguments.h"
#include "config.h"
#include "texts.h"
#include "train_docs.h"
#include "training_call.h"

namespace quern::python {
namespace {

using train::RunConfig;

// The arguments of train().
struct Request {
  py::object data;
  std::optional<Text> preset;
  py::object config, set, tokenizer;
  py::object steps, threads;
  py::object init_from;
  TrainingCall call;
};

void apply(RunConfig& config, const Request& request) {
  apply_settings(config, request.config, request.set);
  apply_argument(config, "train.steps", request.steps, "steps");
  if (!request.threads.is_none()) config.train.threads = threads_from(request.threads);
  apply_argument(config, "data.paths", request.data, "data");
  apply_argument(config, "data.tokenizer", request.tokenizer, "tokenizer");
}

TrainResult train_run(const Request& request) {
  check_call(request.call, "train");
  TrainOptions options{.out = request.call.out, .resume = request.call.resume};
  if (!request.init_from.is_none()) options.init_from = path_from(request.init_from, "[train] init_from");
  if (request.preset) options.preset = request.preset->value;
  return run_call(request.call, api::run_config(options, [&](RunConfig& found) { apply(found, request); }));
}

std::string repr(const TrainResult& result) {
  const auto& validation = result.validation_loss;
  return fmt::format("<quern.TrainResult {}: {} after step {}, loss {:.4f}, validation loss {}>", result.path.string(),
                     result.finished ? "finished" : "stopped", result.step, result.loss,
                     validation ? fmt::format("{:.4f}", *validation) : "not measured");
}

std::string step_repr(const Step& step) {
  return fmt::format("<quern.Step {} of {}: loss {:.4f}, {:.0f} tokens/s>", step.step, step.steps, step.loss,
                     step.tokens_per_s());
}

void bind_step(py::module_& module) {
  py::class_<Step>(module, "Step", kStepClassDoc)
      .def_readonly("step", &Step::step, kStepStepDoc)
      .def_readonly("steps", &Step::steps, kStepStepsDoc)
      .def_readonly("loss", &Step::loss, kStepLossDoc)
      .def_readonly("validation_loss", &Step::validation_loss, kStepValidationLossDoc)
      .def_readonly("learning_rate", &Step::learning_rate, kLearningRateDoc)
      .def_readonly("gradient_norm", &Step::gradient_norm, kGradientNormDoc)
      .def_readonly("skipped", &Step::skipped, kSkippedDoc)
      .def_readonly("tokens", &Step::tokens, kTokensDoc)
      .def_readonly("seconds", &Step::seconds, kSecondsDoc)
      .def_property_readonly("tokens_per_s", &Step::tokens_per_s, kTokensPerSDoc)
      .def("__repr__", step_repr);
}

void bind_result(py::module_& module) {
  py::class_<TrainResult>(module, "TrainResult", kTrainResultDoc)
      .def_readonly("path", &TrainResult::path, kResultPathDoc)
      .def_readonly("step", &TrainResult::step, kResultStepDoc)
      .def_readonly("finished", &TrainResult::finished, kFinishedDoc)
      .def_readonly("loss", &TrainResult::loss, kResultLossDoc)
      .def_readonly("validation_loss", &TrainResult::validation_loss, kResultValidationLossDoc)
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
         py::object tokenizer, py::object steps, py::object threads, bool resume, py::object init_from,
         py::object on_step, py::object progress) {
        return train_run({std::move(data), std::move(preset), std::move(config), std::move(set), std::move(tokenizer),
                          std::move(steps), std::move(threads), std::move(init_from),
                          TrainingCall{std::move(out), resume, std::move(on_step), std::move(progress)}});
      },
      kTrainDoc, py::arg("data") = py::none(), py::kw_only(), py::arg("out"), py::arg("preset") = py::none(),
      py::arg("config") = py::none(), py::arg("set") = py::none(), py::arg("tokenizer") = py::none(),
      py::arg("steps") = py::none(), py::arg("threads") = py::none(), py::arg("resume") = false,
      py::arg("init_from") = py::none(), py::arg("on_step") = py::none(), py::arg("progress") = py::none());
}

}  // namespace quern::python
