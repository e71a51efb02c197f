// A run's settings as Python sees them: {"model": {"layers": 4, ...}, "train": {...}, ...}.
#pragma once

#include <string_view>

#include "module.h"
#include "train/config.h"

namespace quern::python {

py::dict to_dict(const train::RunConfig& config);

// Settings over those of `config`, as {"model.layers": 4} or {"model": {"layers": 4}}. Error that starts with `where`
// for what is no setting or not a value of it.
void apply_dict(train::RunConfig& config, const py::dict& settings, std::string_view where);

// preset(): the settings of a preset.
void bind_config(py::module_& module);

}  // namespace quern::python
