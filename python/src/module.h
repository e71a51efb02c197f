// What the files of the extension offer to module.cc: one for each concept. They convert and let go of Python's lock;
// the work is in the library.
#pragma once

#include <pybind11/pybind11.h>

namespace quern::python {

namespace py = pybind11;

void bind_model(py::module_& module);   // load(), Model, TextStream
void bind_train(py::module_& module);   // train(), preset(), Step, TrainResult
void bind_replay(py::module_& module);  // ReplayBuffer, Column, Sample, Saving, SnapshotResult, snapshot_info()

}  // namespace quern::python
