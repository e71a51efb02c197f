// quern.ReplayBuffer: creation, adding rows and properties.
#include <fmt/format.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "numbers.h"
#include "replay/priority.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "replay_wait.h"
#include "texts.h"

namespace quern::python {
namespace {

using replay::BufferOptions;
using replay::ReplayBuffer;
using replay::Storage;

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

uint64_t add_rows(PyReplay& self, const ColumnTypes::Rows& rows, std::span<const float> priorities, double timeout) {
  return waiting(timeout,
                 [&](const replay::Wait& wait) { return self.buffer.add(rows.columns, rows.rows, priorities, wait); });
}

py::object id_or_none(uint64_t id) { return id == replay::kNoRow ? py::object(py::none()) : py::object(py::int_(id)); }

// As float32; the caller's array without a copy if it has that dtype.
py::array_t<float> priorities_from(const py::object& given, std::string_view what) {
  const py::array found = py::array::ensure(given);
  if (found && found.dtype().equal(py::dtype::of<float>())) return array_from(given, py::dtype::of<float>(), what);
  const py::array_t<double> wide = array_from(given, py::dtype::of<double>(), what);
  py::array_t<float> floats(std::vector<py::ssize_t>(wide.shape(), wide.shape() + wide.ndim()));
  for (py::ssize_t i = 0; i < wide.size(); ++i) floats.mutable_data()[i] = replay::priority_from(wide.data()[i]);
  return floats;
}

py::object add_batch(PyReplay& self, const py::object& columns, const py::object& priorities, const py::object& timeout,
                     const py::kwargs& arrays) {
  const ColumnTypes::Rows rows = self.types.rows_of(all_columns(columns, arrays, "add_batch"), "add_batch");
  const double seconds = timeout_from(timeout);
  py::array_t<float> given;
  if (!priorities.is_none()) {
    given = priorities_from(priorities, "[replay] add_batch: priorities");
    if (given.ndim() != 1) {
      throw Error("[replay] add_batch: priorities: expected one dimension, found {}", given.ndim());
    }
    if (given.size() == 0 && rows.rows > 0)
      throw Error("[replay] add_batch: expected {} priorities, found 0", rows.rows);
  }
  return id_or_none(add_rows(self, rows, {given.data(), static_cast<size_t>(given.size())}, seconds));
}

py::object add(PyReplay& self, const py::object& columns, const py::object& priority, const py::object& timeout,
               const py::kwargs& values) {
  const ColumnTypes::Rows row = self.types.row_of(all_columns(columns, values, "add"), "add");
  const double seconds = timeout_from(timeout);
  const bool has_priority = !priority.is_none();
  const float given = has_priority ? replay::priority_from(real_from(priority, "[replay] add: priority")) : 0.0f;
  return id_or_none(add_rows(self, row, {&given, has_priority ? size_t{1} : size_t{0}}, seconds));
}

size_t update_priorities(PyReplay& self, const py::object& ids, const py::object& priorities) {
  const py::array_t<uint64_t> rows = array_from(ids, py::dtype::of<uint64_t>(), "[replay] update_priorities: ids");
  const py::array_t<float> given = priorities_from(priorities, "[replay] update_priorities: priorities");
  const py::gil_scoped_release unlocked;
  return self.buffer.update_priorities({rows.data(), static_cast<size_t>(rows.size())},
                                       {given.data(), static_cast<size_t>(given.size())});
}

// One row by id, as {name: array}; None if it is no longer in the buffer.
py::object get(const PyReplay& self, const py::object& number) {
  const uint64_t id = whole_from(number, "[replay] get: id");
  const ColumnTypes::OutputArrays places = self.types.outputs_in(py::none(), 1, "get");
  bool there = false;
  {
    const py::gil_scoped_release unlocked;
    there = self.buffer.read(id, places.columns);
  }
  if (!there) return py::none();
  py::dict row;
  for (const auto& [name, array] : places.arrays) row[name] = array[py::int_(0)];
  return row;
}

std::shared_ptr<PyReplay> create(const py::object& columns, const py::object& capacity, bool prioritised,
                                 const py::object& alpha, const py::object& shared, const py::object& file,
                                 const py::object& samples_per_insert, const py::object& min_size,
                                 const py::object& slack, bool prefault, const py::object& seed) {
  const BufferOptions options{
      .capacity = whole_from(capacity, "[replay] capacity", 1),
      .prioritised = prioritised,
      .alpha = real_from(alpha, "[replay] alpha"),
      .limit = {.samples_per_insert = real_from(samples_per_insert, "[replay] samples_per_insert"),
                .minimum = whole_from(min_size, "[replay] min_size", 1),
                .slack = real_from(slack, "[replay] slack")},
      .prefault = prefault};
  return make_replay(schema_from(dict_from(columns, "[replay] columns")), options, storage_from(shared, file),
                     seed_from(seed));
}

std::shared_ptr<PyReplay> attach(const py::object& shared, const py::object& file, const py::object& patience,
                                 const py::object& seed) {
  const Storage storage = storage_from(shared, file);
  const replay::Seed its_seed = seed_from(seed);
  const double seconds = real_from(patience, storage.text() + ": patience");
  if (std::isnan(seconds)) throw Error("{}: patience: expected seconds, found nan", storage.text());
  if (storage.kind == Storage::Kind::kPrivate) throw Error("[replay] attach: expected shared= or file=, found neither");
  std::optional<ReplayBuffer> buffer;
  {
    const py::gil_scoped_release unlocked;
    const std::string path = storage.path();
    const double end = seconds_now() + seconds;
    while (access(path.c_str(), F_OK) != 0 && errno == ENOENT && seconds_now() < end) {
      check_signals();  // Ctrl-C ends the wait
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    buffer.emplace(ReplayBuffer::attach(storage));
  }
  return std::make_shared<PyReplay>(std::move(*buffer), storage, its_seed);
}

std::string repr(const PyReplay& self) {
  const BufferOptions& options = self.buffer.options();
  const std::string where = self.storage.kind == Storage::Kind::kPrivate ? ""
                            : self.storage.kind == Storage::Kind::kShared
                                ? fmt::format(", shared='{}'", self.storage.name)
                                : fmt::format(", file='{}'", self.storage.name);
  return fmt::format("<quern.ReplayBuffer: {} of {} rows, {} columns{}{}>", self.buffer.size(), options.capacity,
                     self.buffer.schema().columns().size(), options.prioritised ? ", prioritised" : "", where);
}

// For pickle, so that a buffer can be passed to another process.
py::tuple reduce(const PyReplay& self) {
  if (self.storage.kind == Storage::Kind::kPrivate) {
    throw Error(
        "[replay] expected a buffer with shared= or file= to pass to another process, found one in private memory");
  }
  const py::object name = py::str(self.storage.name);
  const bool shared = self.storage.kind == Storage::Kind::kShared;
  const py::object attach = py::module_::import("quern").attr("_attach");  // pickle refers to functions by name
  return py::make_tuple(attach, py::make_tuple(shared ? name : py::none(), shared ? py::object(py::none()) : name));
}

}  // namespace

Storage storage_from(const py::object& shared, const py::object& file) {
  if (!shared.is_none() && !file.is_none()) throw Error("[replay] expected shared= or file=, found both");
  if (!shared.is_none()) return Storage::in_shared(text_from(py::str(shared), "[replay] shared"));
  if (!file.is_none()) return Storage::in_file(std::filesystem::absolute(path_from(file, "[replay] file")).string());
  return Storage::in_private();
}

replay::Seed seed_from(const py::object& seed) {
  if (seed.is_none()) return replay::Seed(std::nullopt);
  return replay::Seed(whole_from(seed, "[replay] seed"));
}

std::shared_ptr<PyReplay> make_replay(replay::Schema schema, const BufferOptions& options, const Storage& storage,
                                      const replay::Seed& seed) {
  std::optional<ReplayBuffer> buffer;
  {
    const py::gil_scoped_release unlocked;
    buffer.emplace(ReplayBuffer::create(std::move(schema), options, storage));
  }
  return std::make_shared<PyReplay>(std::move(*buffer), storage, seed);
}

void bind_replay(py::module_& module) {
  bind_column(module);
  PyReplayClass buffer(module, "ReplayBuffer", kReplayBufferDoc);
  buffer
      .def(py::init(&create), py::arg("columns"), py::arg("capacity"), py::kw_only(), py::arg("prioritised") = false,
           py::arg("alpha") = 0.6, py::arg("shared") = py::none(), py::arg("file") = py::none(),
           py::arg("samples_per_insert") = 0.0, py::arg("min_size") = 1, py::arg("slack") = 0.0,
           py::arg("prefault") = true, py::arg("seed") = py::none(), kReplayInitDoc)
      .def_static("attach", &attach, py::arg("shared") = py::none(), py::arg("file") = py::none(),
                  py::arg("patience") = 0.0, py::arg("seed") = py::none(), kAttachDoc)
      .def_static(
          "remove",
          [](const py::object& shared, const py::object& file) {
            const Storage storage = storage_from(shared, file);
            if (storage.kind == Storage::Kind::kPrivate) throw Error("[replay] remove: expected shared= or file=");
            return ReplayBuffer::remove(storage);
          },
          py::arg("shared") = py::none(), py::arg("file") = py::none(), kRemoveDoc)
      .def("add", &add, py::arg("columns") = py::none(), py::kw_only(), py::arg("priority") = py::none(),
           py::arg("timeout") = py::none(), kAddDoc)
      .def("add_batch", &add_batch, py::arg("columns") = py::none(), py::kw_only(), py::arg("priorities") = py::none(),
           py::arg("timeout") = py::none(), kAddBatchDoc)
      .def("get", &get, py::arg("id"), kGetDoc)
      .def("update_priorities", &update_priorities, py::arg("ids"), py::arg("priorities"), kUpdatePrioritiesDoc)
      .def("__len__", [](const PyReplay& self) { return self.buffer.size(); })
      .def("__repr__", &repr)
      .def("__reduce__", &reduce)
      .def_property_readonly(
          "capacity", [](const PyReplay& self) { return self.buffer.capacity(); }, kCapacityDoc)
      .def_property_readonly(
          "total_added", [](const PyReplay& self) { return self.buffer.total_added(); }, kTotalAddedDoc)
      .def_property_readonly(
          "columns", [](const PyReplay& self) { return self.types.to_dict(); }, kColumnsDoc)
      .def_property_readonly(
          "prioritised", [](const PyReplay& self) { return self.buffer.options().prioritised; }, kPrioritisedDoc)
      .def_property_readonly(
          "row_bytes", [](const PyReplay& self) { return self.buffer.schema().stored_bytes(); }, kRowBytesDoc)
      .def_property_readonly(
          "seed", [](const PyReplay& self) { return self.sampler.seed(); }, kSeedDoc)
      .def_property(
          "draws", [](const PyReplay& self) { return self.sampler.draws(); },
          [](PyReplay& self, const py::object& draws) { self.sampler.restore(whole_from(draws, "[replay] draws")); },
          kDrawsDoc);
  bind_sampling(module, buffer);
  bind_snapshots(module, buffer);
}

}  // namespace quern::python
