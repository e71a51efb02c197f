// quern.train(): starts or resumes a run.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/run_training.h"
#include "arguments.h"
#include "config.h"
#include "core/error.h"
#include "numbers.h"
#include "texts.h"
#include "train_docs.h"
#include "words.h"

namespace quern::python {
namespace {

using train::RunConfig;

// The arguments of train().
struct Request {
  py::object data;
  std::filesystem::path out;
  std::optional<Text> preset;
  py::object config, set, tokenizer;
  py::object steps, threads;
  bool resume;
  py::object init_from;
  py::object on_step;
  py::object progress;
};

// Shows the progress of one call of train(), with python/quern/_progress.py. Every function needs the GIL.
class Progress {
 public:
  Progress(const py::object& wanted, const std::filesystem::path& out)
      : bar_(py::module_::import("quern._progress").attr("open_bar")(wanted, out)) {}

  void preparing(std::string_view what, uint64_t done, uint64_t total) const {
    if (!bar_.is_none()) bar_.attr("show_preparation")(py::str(std::string(what)), done, total);
  }
  // Makes room for what the caller prints, until the next step.
  void clear() const {
    if (!bar_.is_none()) bar_.attr("clear")();
  }
  void step(const Step& step) const {
    if (!bar_.is_none()) bar_.attr("show_step")(step);
  }
  // Ends the line, which stays.
  void close() const {
    if (!bar_.is_none()) bar_.attr("close")();
  }

 private:
  py::object bar_;
};

// Whether the run goes on: None, which a function without a return statement returns, does not stop it.
bool call_on_step(const py::object& on_step, const Step& step) {
  const py::object returned = on_step(step);
  if (returned.is_none()) return true;
  const int truth = PyObject_IsTrue(returned.ptr());
  if (truth < 0) throw py::error_already_set();  // such as an array of several numbers
  return truth != 0;
}

void apply_argument(RunConfig& config, const char* setting, const py::object& value, std::string_view where) {
  if (value.is_none()) return;
  if (is_mapping(value)) throw Error("[config] {}: expected a value of {}, found {}", where, setting, shown(value));
  py::dict settings;
  settings[setting] = value;
  apply_dict(config, settings, where);
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
  apply_argument(config, "data.tokenizer", request.tokenizer, "tokenizer");
}

TrainResult run_unlocked(const TrainOptions& options, const RunConfig& config) {
  const py::gil_scoped_release unlocked;
  return api::run_training(options, config);
}

TrainResult train_run(const Request& request) {
  if (!request.on_step.is_none() && PyCallable_Check(request.on_step.ptr()) == 0) {
    throw Error("[train] on_step: expected a function, found {}", shown(request.on_step));
  }
  if (request.out.empty()) throw Error("[train] out: expected a folder for the run, found an empty name");
  TrainOptions options{.out = request.out, .resume = request.resume};
  if (!request.init_from.is_none()) options.init_from = path_from(request.init_from, "[train] init_from");
  if (request.preset) options.preset = request.preset->value;
  const RunConfig config = api::run_config(options, [&](RunConfig& found) { apply(found, request); });
  const Progress progress(request.progress, request.out);
  // Called with the GIL released. A function that returns something false or raises, or a signal such as Ctrl-C, ends
  // the run after the step, with a checkpoint.
  options.on_step = [&](const Step& step) {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    bool more = true;
    if (!request.on_step.is_none()) {
      progress.clear();
      more = call_on_step(request.on_step, step);
    }
    progress.step(step);
    return more;
  };
  options.on_warning = [&](const std::string& text) {
    const py::gil_scoped_acquire lock;
    progress.clear();
    warn(in_python_words(text));
  };
  options.on_preparing = [&](std::string_view what, uint64_t done, uint64_t total) {
    const py::gil_scoped_acquire lock;
    check_signals();
    progress.preparing(what, done, total);
  };
  try {
    TrainResult result = run_unlocked(options, config);
    progress.close();
    return result;
  } catch (...) {
    progress.close();
    throw;
  }
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
        return train_run({std::move(data), std::move(out), std::move(preset), std::move(config), std::move(set),
                          std::move(tokenizer), std::move(steps), std::move(threads), resume, std::move(init_from),
                          std::move(on_step), std::move(progress)});
      },
      kTrainDoc, py::arg("data") = py::none(), py::kw_only(), py::arg("out"), py::arg("preset") = py::none(),
      py::arg("config") = py::none(), py::arg("set") = py::none(), py::arg("tokenizer") = py::none(),
      py::arg("steps") = py::none(), py::arg("threads") = py::none(), py::arg("resume") = false,
      py::arg("init_from") = py::none(), py::arg("on_step") = py::none(), py::arg("progress") = py::none());
}

}  // namespace quern::python
