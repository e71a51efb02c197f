// Text generation, piece by piece.
#pragma once

#include <memory>

#include "evaluate/load.h"
#include "module.h"

namespace quern::python {

void bind_text_stream(py::module_& module);

// Binds Model.generate() and Model.stream().
void bind_generation(py::class_<train::TrainedModel, std::shared_ptr<train::TrainedModel>>& model);

}  // namespace quern::python
