#include "arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/cpu_info.h"
#include "core/error.h"
#include "core/team.h"
#include "numbers.h"
#include "texts.h"

namespace quern::python {
namespace {

template <typename Whole>
std::vector<int32_t> narrowed(const py::array& array) {
  const auto values = py::array_t<Whole, py::array::c_style | py::array::forcecast>::ensure(array);
  if (!values) throw py::error_already_set();
  std::vector<int32_t> ids(static_cast<size_t>(values.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const Whole value = values.data()[i];
    if (!std::in_range<int32_t>(value)) throw Error("[model] tokens: expected 32-bit ids, found {}", value);
    ids[i] = static_cast<int32_t>(value);
  }
  return ids;
}

std::vector<int32_t> ids_of(const py::array& array) {
  const char kind = array.dtype().kind();
  if (array.size() == 0) return {};  // any dtype: NumPy picks one for an empty list
  if (kind == 'i') return narrowed<int64_t>(array);
  if (kind == 'u') return narrowed<uint64_t>(array);
  throw Error("[model] tokens: expected whole numbers, found {}", py::str(array.dtype()).cast<std::string>());
}

}  // namespace

Tokens tokens_from(const py::object& object) {
  const py::array array = py::array::ensure(object);
  if (!array) {
    PyErr_Clear();  // lists of different lengths
    throw Error("[model] tokens: expected an array of whole numbers, found {}", shown(object));
  }
  if (array.ndim() != 1 && array.ndim() != 2) {
    throw Error("[model] tokens: expected 1 or 2 dimensions, found {}", array.ndim());
  }
  const bool several = array.ndim() == 2;
  return {.ids = ids_of(array),
          .count = several ? static_cast<size_t>(array.shape(0)) : 1,
          .T = static_cast<size_t>(array.shape(several ? 1 : 0)),
          .several = several};
}

size_t threads_from(const py::object& threads) {
  if (threads.is_none()) return std::min(cpu_info().usable_cores, kMaxThreads);
  if (py::isinstance<py::bool_>(threads)) {  // as for train.threads, True is not a number of threads
    throw Error("threads: expected a whole number from 1 to {}, found {}", kMaxThreads, shown(threads));
  }
  return whole_from(threads, "threads", 1, kMaxThreads);
}

std::string checkpoint_from(const py::object& checkpoint) {
  constexpr const char* kWhat = "[run] checkpoint";
  if (checkpoint.is_none()) return {};
  if (py::isinstance<py::str>(checkpoint)) {
    std::string text = text_from(checkpoint, kWhat);
    if (!text.empty()) return text;
  } else if (is_path(checkpoint)) {
    return path_from(checkpoint, kWhat).string();
  } else if (PyIndex_Check(checkpoint.ptr()) != 0 && !py::isinstance<py::bool_>(checkpoint)) {
    return std::to_string(whole_from(checkpoint, kWhat));
  }
  throw Error("{}: expected \"newest\", \"best\", the number of a step, or a path, found {}", kWhat, shown(checkpoint));
}

void check_signals() {
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// The line that a warning names is that of the caller: the function of quern/_calls.py is the first frame.
void warn(const std::string& text) {
  constexpr Py_ssize_t kCaller = 2;
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), kCaller) != 0) throw py::error_already_set();
}

}  // namespace quern::python
