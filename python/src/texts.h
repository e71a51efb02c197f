// Conversion of Python strings, file names and dicts to C++. A str may hold invalid text (half of a surrogate pair),
// and a file name may hold a zero byte, which no file system accepts: these raise an Error, where pybind11 alone would
// raise a RuntimeError, or a TypeError about the signature.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "module.h"

namespace quern::python {

// The UTF-8 of a str. `what` is the prefix of the Error message.
std::string text_from(const py::handle& text, std::string_view what);

// Whether it is a str, or a path with __fspath__().
bool is_path(const py::handle& object);

// A file name, from an object that is_path() accepts or from bytes.
std::filesystem::path path_from(const py::handle& object, std::string_view what);

// The dict itself, or a new one with the items of another mapping. Error for anything else.
py::dict dict_from(const py::handle& object, std::string_view what);
bool is_mapping(const py::handle& object);

// An argument that is a str, or its UTF-8 as bytes.
struct Text {
  std::string value;
};

}  // namespace quern::python

namespace pybind11::detail {

template <>
struct type_caster<quern::python::Text> {
  PYBIND11_TYPE_CASTER(quern::python::Text, const_name("str"));
  bool load(handle source, bool) {
    if (PyBytes_Check(source.ptr()) != 0) {  // as pybind11 does: UTF-8 already
      value.value.assign(PyBytes_AS_STRING(source.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(source.ptr())));
      return true;
    }
    if (PyUnicode_Check(source.ptr()) == 0) return false;
    value.value = quern::python::text_from(source, "[python] argument");
    return true;
  }
};

// Replaces the caster in pybind11/stl/filesystem.h.
template <>
struct type_caster<std::filesystem::path> {
  PYBIND11_TYPE_CASTER(std::filesystem::path, const_name("os.PathLike"));
  bool load(handle source, bool) {
    if (!quern::python::is_path(source) && PyBytes_Check(source.ptr()) == 0) return false;
    value = quern::python::path_from(source, "[files] path");
    return true;
  }
  static handle cast(const std::filesystem::path& path, return_value_policy, handle) {
    const std::string& name = path.native();
    const auto text =
        reinterpret_steal<object>(PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    if (!text) throw error_already_set();
    return module_::import("pathlib").attr("Path")(text).release();
  }
};

}  // namespace pybind11::detail
