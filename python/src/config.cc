#include "config.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <string>
#include <variant>
#include <vector>

#include "config/config_fields.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "core/text.h"
#include "numbers.h"
#include "texts.h"

namespace quern::python {
namespace {

constexpr const char* kPresetDoc =
    R"(Returns the settings of a preset, to pass to train() or selfplay() as `config`.

`name` is tiny, small, gpt2, minute or ten-minutes; for selfplay(), tictactoe, connect4 or chess.

>>> config = quern.preset("tiny")
>>> config["model"]["layers"], config["train"]["steps"]
(4, 1000))";

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

// An integer beyond TOML's range is passed as a string of digits, as in a file (config/config_fields.h).
train::SettingValue number_of(py::handle object, const std::string& what) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!number) {
    PyErr_Clear();
    return real_from(object, what);
  }
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return value;
  try {
    return py::str(number).cast<std::string>();
  } catch (const py::error_already_set&) {
    return "a number of thousands of digits";
  }
}

train::SettingValue value_of(py::handle object, std::string_view where, const std::string& path) {
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  const std::string what = fmt::format("[config] {}: {}", where, path);
  if (py::isinstance<py::str>(object)) return text_from(object, what);
  if (is_path(object)) return path_from(object, what).string();
  if (is_real(object)) return number_of(object, what);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    std::vector<std::string> items;
    for (const py::handle item : object) {
      if (!is_path(item)) throw Error("{}: expected a list of strings, found {} in it", what, type_name(item));
      items.push_back(py::isinstance<py::str>(item) ? text_from(item, what) : path_from(item, what).string());
    }
    return items;
  }
  throw Error("[config] {}: {}: expected a number, a string, True, False or a list, found {}", where, in_quotes(path),
              type_name(object));
}

std::string key_of(py::handle key, std::string_view where) {
  if (py::isinstance<py::str>(key)) return text_from(key, fmt::format("[config] {}", where));
  throw Error("[config] {}: expected names of settings, found {}", where, shown(key));
}

void apply_table(train::RunConfig& config, const py::dict& settings, std::string_view where,
                 const std::string& prefix) {
  for (const auto& [key, value] : settings) {
    const std::string path = prefix + key_of(key, where);
    if (is_mapping(value) && prefix.empty()) {
      apply_table(config, dict_from(value, where), where, path + ".");
    } else {
      train::apply_value(config, path, value_of(value, where, path), where);
    }
  }
}

train::RunConfig preset_of(const std::string& name) {
  const bool game = name == "tictactoe" || name == "connect4" || name == "chess";
  return game ? train::selfplay_preset(name) : train::preset(name);
}

}  // namespace

py::dict to_dict(const train::RunConfig& config) {
  train::RunConfig copy = config;  // fields return mutable references
  py::dict tables;
  for (const train::Field& field : train::fields()) {
    const py::str table = std::string(field.table);
    if (!tables.contains(table)) tables[table] = py::dict();
    tables[table][py::str(std::string(field.name))] = std::visit(Getter{copy}, field.kind);
  }
  return tables;
}

void apply_dict(train::RunConfig& config, const py::dict& settings, std::string_view where) {
  apply_table(config, settings, where, "");
}

void bind_config(py::module_& module) {
  module.def(
      "_advise_setting", [](const Text& word) { return train::advise_setting(word.value).setting; },
      "Returns the setting that a word is likely to mean, for messages: optimizer.rate for lr; empty if there is none.",
      py::arg("word"));
  module.def(
      "preset", [](const Text& name) { return to_dict(preset_of(name.value)); }, kPresetDoc, py::arg("name"));
}

}  // namespace quern::python
