#include "config.h"

#include <pybind11/stl.h>

#include <string>
#include <variant>

#include "train/config_fields.h"

namespace quern::python {
namespace {

// A field's value.
struct Getter {
  train::RunConfig& config;

  py::object operator()(const train::WholeField& field) const { return py::cast(field.of(config)); }
  py::object operator()(const train::RealField& field) const { return py::cast(field.of(config)); }
  py::object operator()(const train::FlagField& field) const { return py::cast(field.of(config)); }
  py::object operator()(const train::ChoiceField& field) const { return py::cast(field.names[field.get(config)]); }
  py::object operator()(const train::TextField& field) const { return py::cast(field.get(config)); }
  py::object operator()(const train::ListField& field) const { return py::cast(field.of(config)); }
};

}  // namespace

py::dict to_dict(const train::RunConfig& config) {
  train::RunConfig copy = config;  // fields hand out references that can be written
  py::dict tables;
  for (const train::Field& field : train::fields()) {
    const py::str table = std::string(field.table);
    if (!tables.contains(table)) tables[table] = py::dict();
    tables[table][py::str(std::string(field.name))] = std::visit(Getter{copy}, field.kind);
  }
  return tables;
}

}  // namespace quern::python
