#include "training_call.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "api/run_training.h"
#include "arguments.h"
#include "config.h"
#include "core/error.h"
#include "numbers.h"
#include "texts.h"
#include "words.h"

namespace quern::python {
namespace {

using train::RunConfig;

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

}  // namespace

bool goes_on(const py::object& callback, const py::object& argument) {
  const py::object returned = callback(argument);
  if (returned.is_none()) return true;
  const int truth = PyObject_IsTrue(returned.ptr());
  if (truth < 0) throw py::error_already_set();  // such as an array of several numbers
  return truth != 0;
}

void check_call(const TrainingCall& call, const char* function) {
  if (!call.on_step.is_none() && PyCallable_Check(call.on_step.ptr()) == 0) {
    throw Error("[{}] on_step: expected a function, found {}", function, shown(call.on_step));
  }
  if (call.out.empty()) throw Error("[{}] out: expected a folder for the run, found an empty name", function);
}

TrainResult run_call(const TrainingCall& call, const RunConfig& config) {
  return run_call(call, [&](const TrainOptions& options) { return api::run_training(options, config); });
}

TrainResult run_call(const TrainingCall& call, const std::function<TrainResult(const TrainOptions&)>& run) {
  TrainOptions options{.out = call.out, .resume = call.resume};
  const Progress progress(call.progress, call.out);
  // Called with the GIL released.
  options.on_step = [&](const Step& step) {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    bool more = true;
    if (!call.on_step.is_none()) {
      progress.clear();
      more = goes_on(call.on_step, py::cast(step));
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
    std::optional<TrainResult> result;
    {
      const py::gil_scoped_release unlocked;
      result = run(options);
    }
    progress.close();
    return *std::move(result);
  } catch (...) {
    progress.close();
    throw;
  }
}

void apply_argument(RunConfig& config, const char* setting, const py::object& value, std::string_view where) {
  if (value.is_none()) return;
  if (is_mapping(value)) throw Error("[config] {}: expected a value of {}, found {}", where, setting, shown(value));
  py::dict settings;
  settings[setting] = value;
  apply_dict(config, settings, where);
}

void apply_settings(RunConfig& config, const py::object& file_or_dict, const py::object& set) {
  if (is_mapping(file_or_dict)) {
    apply_dict(config, dict_from(file_or_dict, "[config] config"), "config");
  } else if (!file_or_dict.is_none()) {
    train::apply_toml_file(config, path_from(file_or_dict, "[config] config"));
  }
  if (!set.is_none()) apply_dict(config, dict_from(set, "[config] set"), "set");
}

}  // namespace quern::python
