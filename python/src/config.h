// A run's settings as a Python dict: {"model": {"layers": 4, ...}, "train": {...}, ...}.
#pragma once

#include <string_view>

#include "config/config.h"
#include "module.h"

namespace quern::python {

py::dict to_dict(const train::RunConfig& config);

// Overrides settings of `config`, given as {"model.layers": 4} or {"model": {"layers": 4}}. Error that starts with
// `where` for an unknown setting or an invalid value.
void apply_dict(train::RunConfig& config, const py::dict& settings, std::string_view where);

// Binds preset(): the settings of a preset.
void bind_config(py::module_& module);

}  // namespace quern::python
