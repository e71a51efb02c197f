// What train() and finetune() have in common: callbacks, progress and arguments that are settings.
#pragma once

#include <quern/train.h>

#include <filesystem>
#include <functional>
#include <string_view>

#include "config/config.h"
#include "module.h"

namespace quern::python {

struct TrainingCall {
  std::filesystem::path out;
  bool resume;
  py::object on_step;   // a function or None
  py::object progress;  // True, False or None
};

// Error unless on_step and out can be used. `function` is the name of the caller.
void check_call(const TrainingCall& call, const char* function);

// Trains with `config`. A function that returns something false or raises, or a signal such as Ctrl-C, ends the run
// after the step, with a checkpoint. Releases the GIL.
TrainResult run_call(const TrainingCall& call, const train::RunConfig& config);
// The same for another kind of run: run(options), without the GIL, gets out, resume and the callbacks.
TrainResult run_call(const TrainingCall& call, const std::function<TrainResult(const TrainOptions&)>& run);

// Calls a callback. Whether the run goes on: None, which a function without a return statement returns, does not stop
// it.
bool goes_on(const py::object& callback, const py::object& argument);

// Overrides a setting with the argument `where`, unless it is None.
void apply_argument(train::RunConfig& config, const char* setting, const py::object& value, std::string_view where);

// Overrides settings with the arguments `config`, a dict or a file, and `set`, a dict.
void apply_settings(train::RunConfig& config, const py::object& file_or_dict, const py::object& set);

}  // namespace quern::python
