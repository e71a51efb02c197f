// One function per file of the extension, called by module.cc. They convert arguments and release the GIL; the work is
// done in the library.
#pragma once

#include <pybind11/pybind11.h>

namespace quern::python {

namespace py = pybind11;

void bind_model(py::module_& module);        // load(), Model, TextStream
void bind_train(py::module_& module);        // train(), preset(), Step, TrainResult
void bind_finetune(py::module_& module);     // finetune()
void bind_games(py::module_& module);        // game(), BuiltinGame, Position
void bind_board_model(py::module_& module);  // load_board(), BoardModel
void bind_selfplay(py::module_& module);     // selfplay(), Generation
void bind_train_board(py::module_& module);  // train_board()
void bind_replay(py::module_& module);       // ReplayBuffer, Column, Sample, Saving, SnapshotResult, snapshot_info()

}  // namespace quern::python
