#include "texts.h"

#include "core/error.h"
#include "numbers.h"

namespace quern::python {

std::string text_from(const py::handle& text, std::string_view what) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes != nullptr) return {bytes, static_cast<size_t>(size)};
  PyErr_Clear();
  throw Error("{}: expected text that can be written as UTF-8, found {}", what, shown(text));
}

bool is_path(const py::handle& object) { return py::isinstance<py::str>(object) || py::hasattr(object, "__fspath__"); }

std::filesystem::path path_from(const py::handle& object, std::string_view what) {
  const auto name = py::reinterpret_steal<py::object>(PyOS_FSPath(object.ptr()));
  if (!name) {
    PyErr_Clear();
    throw Error("{}: expected the name of a file, found {}", what, type_name(object));
  }
  py::object bytes = name;
  if (py::isinstance<py::str>(name)) bytes = py::reinterpret_steal<py::object>(PyUnicode_EncodeFSDefault(name.ptr()));
  if (!bytes) {
    PyErr_Clear();
    throw Error("{}: expected the name of a file, found {}, which no file can have", what, shown(name));
  }
  const std::string_view text(PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
  if (text.find('\0') == std::string_view::npos) return text;
  throw Error("{}: expected the name of a file, without a zero byte, found {}", what, shown(name));
}

bool is_mapping(const py::handle& object) {
  return py::isinstance<py::dict>(object) ||
         py::isinstance(object, py::module_::import("collections.abc").attr("Mapping"));
}

py::dict dict_from(const py::handle& object, std::string_view what) {
  if (py::isinstance<py::dict>(object)) return py::reinterpret_borrow<py::dict>(object);
  if (!is_mapping(object)) throw Error("{}: expected a dict, found {}", what, type_name(object));
  py::dict items;
  if (PyDict_Update(items.ptr(), object.ptr()) != 0) throw py::error_already_set();
  return items;
}

}  // namespace quern::python
