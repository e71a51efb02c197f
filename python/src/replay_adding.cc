// ReplayBuffer.add() and add_batch(), and the same of a quern.ReplayWriter.
#include "replay_adding.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/error.h"
#include "numbers.h"
#include "replay/priority.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "replay_episode_docs.h"
#include "replay_wait.h"
#include "texts.h"

namespace quern::python {
namespace {

using replay::Stream;

// Adds the rows of one actor. Keeps the buffer alive. The lock is for two threads that share a writer by mistake: their
// rows are mixed up, but nothing breaks.
struct PyWriter {
  PyWriter(std::shared_ptr<PyReplay> its_buffer, size_t count)
      : buffer(std::move(its_buffer)), streams(count), count(count) {}

  std::shared_ptr<PyReplay> buffer;
  replay::Streams streams;
  size_t count;
  std::mutex mutex;
};

// The columns come from the dict `columns` and from keyword arguments; the dict allows a column to have the name of a
// parameter.
py::dict all_columns(const py::object& columns, const py::kwargs& more, std::string_view storage) {
  if (columns.is_none()) return more;
  if (!is_mapping(columns)) {
    throw Error("[replay] {}: expected a dict of columns or columns by name, found {}", storage, type_name(columns));
  }
  py::dict all = dict_from(columns, storage).attr("copy")();
  for (const auto& [name, array] : more) all[name] = array;
  return all;
}

// With the GIL released. A writer's streams, or those of the rows of one call.
uint64_t add_rows(PyReplay& self, PyWriter* writer, const ColumnTypes::Rows& rows, std::span<const float> priorities,
                  double timeout) {
  if (writer != nullptr) writer->streams.expect_rows(rows.rows);
  return waiting(timeout, [&](const replay::Wait& wait) {
    Stream alone;
    if (writer == nullptr) return self.buffer.add(rows.columns, rows.rows, priorities, wait, {&alone, 1});
    const std::lock_guard guard(writer->mutex);
    return self.buffer.add(rows.columns, rows.rows, priorities, wait, writer->streams.get());
  });
}

py::object id_or_none(uint64_t id) { return id == replay::kNoRow ? py::object(py::none()) : py::object(py::int_(id)); }

struct AddArguments {
  const py::object &columns, &priorities, &timeout;
  std::optional<bool> cast;
};

py::object add_batch(PyReplay& self, PyWriter* writer, const AddArguments& given, const py::kwargs& arrays) {
  const ColumnTypes::Rows rows =
      self.types.rows_of(all_columns(given.columns, arrays, "add_batch"), given.cast.value_or(self.cast), "add_batch");
  const double seconds = timeout_from(given.timeout);
  py::array_t<float> priorities;
  if (!given.priorities.is_none()) {
    priorities = priorities_from(given.priorities, "[replay] add_batch: priorities");
    if (priorities.ndim() != 1) {
      throw Error("[replay] add_batch: priorities: expected one dimension, found {}", priorities.ndim());
    }
    if (priorities.size() == 0 && rows.rows > 0) {
      throw Error("[replay] add_batch: expected {} priorities, found 0", rows.rows);
    }
  }
  return id_or_none(add_rows(self, writer, rows, {priorities.data(), static_cast<size_t>(priorities.size())}, seconds));
}

py::object add(PyReplay& self, PyWriter* writer, const AddArguments& given, const py::kwargs& values) {
  if (writer == nullptr && self.buffer.links() != nullptr) {
    throw Error(
        "[replay] add: expected the rows of an actor, found one row; in a buffer with episodes, call writer = "
        "buffer.writer() once per actor and then writer.add()");
  }
  const ColumnTypes::Rows row =
      self.types.row_of(all_columns(given.columns, values, "add"), given.cast.value_or(self.cast), "add");
  const double seconds = timeout_from(given.timeout);
  const bool has_priority = !given.priorities.is_none();
  const float priority =
      has_priority ? replay::priority_from(real_from(given.priorities, "[replay] add: priority")) : 0.0f;
  return id_or_none(add_rows(self, writer, row, {&priority, has_priority ? size_t{1} : size_t{0}}, seconds));
}

using OptionalBool = std::optional<bool>;

}  // namespace

py::array_t<float> priorities_from(const py::object& given, std::string_view what) {
  const py::array found = py::array::ensure(given);
  if (found && found.dtype().equal(py::dtype::of<float>())) return array_from(given, py::dtype::of<float>(), what);
  const py::array_t<double> wide = array_from(given, py::dtype::of<double>(), what);
  py::array_t<float> floats(std::vector<py::ssize_t>(wide.shape(), wide.shape() + wide.ndim()));
  for (py::ssize_t i = 0; i < wide.size(); ++i) floats.mutable_data()[i] = replay::priority_from(wide.data()[i]);
  return floats;
}

void bind_adding(py::module_& module, PyReplayClass& buffer) {
  py::class_<PyWriter> writer(module, "ReplayWriter", kReplayWriterDoc);  // before the signature that names it
  buffer
      .def(
          "add",
          [](PyReplay& self, const py::object& columns, const py::object& priority, const py::object& timeout,
             OptionalBool cast, const py::kwargs& values) {
            return add(self, nullptr, {columns, priority, timeout, cast}, values);
          },
          py::arg("columns") = py::none(), py::kw_only(), py::arg("priority") = py::none(),
          py::arg("timeout") = py::none(), py::arg("cast") = py::none(), kAddDoc)
      .def(
          "add_batch",
          [](PyReplay& self, const py::object& columns, const py::object& priorities, const py::object& timeout,
             OptionalBool cast, const py::kwargs& arrays) {
            return add_batch(self, nullptr, {columns, priorities, timeout, cast}, arrays);
          },
          py::arg("columns") = py::none(), py::kw_only(), py::arg("priorities") = py::none(),
          py::arg("timeout") = py::none(), py::arg("cast") = py::none(), kAddBatchDoc)
      .def(
          "writer",
          [](const std::shared_ptr<PyReplay>& self, const py::object& streams) {
            replay::expect_episodes(self->buffer, "writer");
            return std::make_unique<PyWriter>(self, whole_from(streams, "[replay] writer: streams", 1, 1 << 20));
          },
          py::arg("streams") = 1, kWriterDoc);
  writer
      .def(
          "add",
          [](PyWriter& self, const py::object& columns, const py::object& priority, const py::object& timeout,
             OptionalBool cast, const py::kwargs& values) {
            return add(*self.buffer, &self, {columns, priority, timeout, cast}, values);
          },
          py::arg("columns") = py::none(), py::kw_only(), py::arg("priority") = py::none(),
          py::arg("timeout") = py::none(), py::arg("cast") = py::none(), kWriterAddDoc)
      .def(
          "add_batch",
          [](PyWriter& self, const py::object& columns, const py::object& priorities, const py::object& timeout,
             OptionalBool cast, const py::kwargs& arrays) {
            return add_batch(*self.buffer, &self, {columns, priorities, timeout, cast}, arrays);
          },
          py::arg("columns") = py::none(), py::kw_only(), py::arg("priorities") = py::none(),
          py::arg("timeout") = py::none(), py::arg("cast") = py::none(), kWriterAddBatchDoc)
      .def(
          "reset",
          [](PyWriter& self) {
            const py::gil_scoped_release unlocked;
            const std::lock_guard guard(self.mutex);
            self.streams.reset();
          },
          kWriterResetDoc)
      .def_property_readonly(
          "streams", [](const PyWriter& self) { return self.count; }, kWriterStreamsDoc)
      .def("__repr__", [](const PyWriter& self) {
        return fmt::format("<quern.ReplayWriter of {} stream{}>", self.count, self.count == 1 ? "" : "s");
      });
}

}  // namespace quern::python
