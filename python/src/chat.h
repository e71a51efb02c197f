// Answers of a model to conversations.
#pragma once

#include <memory>

#include "evaluate/load.h"
#include "module.h"

namespace quern::python {

// Binds Model.chat().
void bind_chat(py::class_<train::TrainedModel, std::shared_ptr<train::TrainedModel>>& model);

}  // namespace quern::python
