// A run's settings as Python sees them: {"model": {"layers": 4, ...}, "train": {...}, ...}.
#pragma once

#include "module.h"
#include "train/config.h"

namespace quern::python {

py::dict to_dict(const train::RunConfig& config);

}  // namespace quern::python
