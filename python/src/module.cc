// The extension quern._quern. To add a concept, write a file with bind_NAME(), declare it in module.h, call it here,
// and add its names to quern/__init__.py and quern/_quern.pyi.
#include "module.h"

#include <exception>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "kernels/target.h"
#include "words.h"

namespace quern::python {
namespace {

constexpr const char* kErrorDoc = R"(Bad input. The message is one line: where, what was expected and what was found.

>>> try:
...     quern.load("nowhere")
... except ValueError as error:
...     print(error)
[run] nowhere: expected a run with a config.toml, found none)";

// OSError(number, text, path), which Python maps to FileNotFoundError or another subclass by the error number.
void raise_os_error(const std::filesystem::filesystem_error& error) {
  const py::tuple arguments = py::make_tuple(error.code().value(), error.code().message(), error.path1().string());
  PyErr_SetObject(PyExc_OSError, arguments.ptr());
}

void register_errors(py::module_& module) {
  static py::exception<Error> error_type(module, "Error", PyExc_ValueError);
  error_type.doc() = kErrorDoc;
  py::register_exception_translator([](std::exception_ptr exception) {
    try {
      std::rethrow_exception(std::move(exception));
    } catch (const Error& error) {
      error_type(in_python_words(error.what()).c_str());
    } catch (const std::filesystem::filesystem_error& error) {
      raise_os_error(error);
    }
  });
}

}  // namespace
}  // namespace quern::python

PYBIND11_MODULE(_quern, module) {
  quern::kernels::select_target_from_environment();
  module.attr("__version__") = QUERN_VERSION;
  // pybind11 before 2.12 reads the fields of NumPy 2's arrays at the wrong places: wrong strides, and no error.
  module.attr("_numpy_2") = PYBIND11_VERSION_HEX >= 0x020C0000;
  quern::python::register_errors(module);
  module.def("_in_python_words", quern::python::in_python_words);  // for its test
  quern::python::bind_model(module);
  quern::python::bind_train(module);
  quern::python::bind_finetune(module);
  quern::python::bind_replay(module);
  quern::python::bind_games(module);
  quern::python::bind_board_model(module);
  quern::python::bind_selfplay(module);
  quern::python::bind_train_board(module);
}
