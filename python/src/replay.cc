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
#include "replay_adding.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "replay_wait.h"
#include "texts.h"

namespace quern::python {
namespace {

using replay::BufferOptions;
using replay::ReplayBuffer;
using replay::Storage;

size_t update_priorities(PyReplay& self, const py::object& ids, const py::object& priorities) {
  const py::array_t<uint64_t> rows = array_from(ids, py::dtype::of<uint64_t>(), "[replay] update_priorities: ids");
  const py::array_t<float> given = priorities_from(priorities, "[replay] update_priorities: priorities");
  const py::gil_scoped_release unlocked;
  return self.buffer.update_priorities({rows.data(), static_cast<size_t>(rows.size())},
                                       {given.data(), static_cast<size_t>(given.size())});
}

// "prioritized" is the same word.
bool prioritised_from(const py::object& british, const py::object& american) {
  for (const py::object& given : {british, american}) {
    if (!given.is_none() && !py::isinstance<py::bool_>(given)) {
      throw Error("[replay] prioritised: expected True or False, found {}", shown(given));
    }
  }
  if (!british.is_none() && !american.is_none() && !british.equal(american)) {
    throw Error("[replay] prioritised: expected the same as prioritized, found {} and {}", shown(british),
                shown(american));
  }
  return (!british.is_none() && british.cast<bool>()) || (!american.is_none() && american.cast<bool>());
}

std::string column_name(const py::object& name, const char* what) {
  if (name.is_none()) return {};
  if (!py::isinstance<py::str>(name))
    throw Error("[replay] {}: expected the name of a column, found {}", what, shown(name));
  return text_from(name, fmt::format("[replay] {}", what));
}

enum class Make { kNew, kOpenOrCreate };

template <Make kMake>
std::shared_ptr<PyReplay> create(const py::object& columns, const py::object& capacity, const py::object& prioritised,
                                 const py::object& alpha, const py::object& shared, const py::object& file,
                                 const py::object& terminal, const py::object& truncated,
                                 const py::object& samples_per_insert, const py::object& min_size,
                                 const py::object& slack, bool prefault, const py::object& seed, bool cast,
                                 const py::object& prioritized) {
  const BufferOptions options{
      .capacity = whole_from(capacity, "[replay] capacity", 1),
      .prioritised = prioritised_from(prioritised, prioritized),
      .alpha = real_from(alpha, "[replay] alpha"),
      .limit = {.samples_per_insert = real_from(samples_per_insert, "[replay] samples_per_insert"),
                .minimum = whole_from(min_size, "[replay] min_size", 1),
                .slack = real_from(slack, "[replay] slack")},
      .prefault = prefault,
      .terminal = column_name(terminal, "terminal"),
      .truncated = column_name(truncated, "truncated")};
  const Storage storage = storage_from(shared, file);
  if (kMake == Make::kOpenOrCreate && storage.kind == Storage::Kind::kPrivate) {
    throw Error("[replay] open_or_create: expected shared= or file=, found neither");
  }
  replay::Schema schema = schema_from(dict_from(columns, "[replay] columns"));
  const replay::Seed its_seed = seed_from(seed);
  std::optional<ReplayBuffer> buffer;
  {
    const py::gil_scoped_release unlocked;
    buffer.emplace(kMake == Make::kNew ? ReplayBuffer::create(std::move(schema), options, storage)
                                       : ReplayBuffer::open_or_create(schema, options, storage));
  }
  auto made = std::make_shared<PyReplay>(std::move(*buffer), storage, its_seed);
  made->cast = cast;
  return made;
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

py::object name_or_none(const std::string& name) {
  return name.empty() ? py::object(py::none()) : py::object(py::str(name));
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
  if (!shared.is_none()) {
    if (!py::isinstance<py::str>(shared)) throw Error("[replay] shared: expected a name, found {}", shown(shared));
    return Storage::in_shared(text_from(shared, "[replay] shared"));
  }
  if (!file.is_none()) return Storage::in_file(std::filesystem::absolute(path_from(file, "[replay] file")).string());
  return Storage::in_private();
}

replay::Seed seed_from(const py::object& seed) {
  if (seed.is_none()) return replay::Seed(std::nullopt);
  return replay::Seed(whole_from(seed, "[replay] seed"));
}

void bind_replay(py::module_& module) {
  bind_column(module);
  PyReplayClass buffer(module, "ReplayBuffer", kReplayBufferDoc);
  buffer
      .def(py::init(&create<Make::kNew>), py::arg("columns"), py::arg("capacity"), py::kw_only(),
           py::arg("prioritised") = py::none(), py::arg("alpha") = 0.6, py::arg("shared") = py::none(),
           py::arg("file") = py::none(), py::arg("terminal") = py::none(), py::arg("truncated") = py::none(),
           py::arg("samples_per_insert") = 0.0, py::arg("min_size") = 1, py::arg("slack") = 0.0,
           py::arg("prefault") = true, py::arg("seed") = py::none(), py::arg("cast") = false,
           py::arg("prioritized") = py::none(), kReplayInitDoc)
      .def_static("open_or_create", &create<Make::kOpenOrCreate>, py::arg("columns"), py::arg("capacity"),
                  py::kw_only(), py::arg("prioritised") = py::none(), py::arg("alpha") = 0.6,
                  py::arg("shared") = py::none(), py::arg("file") = py::none(), py::arg("terminal") = py::none(),
                  py::arg("truncated") = py::none(), py::arg("samples_per_insert") = 0.0, py::arg("min_size") = 1,
                  py::arg("slack") = 0.0, py::arg("prefault") = true, py::arg("seed") = py::none(),
                  py::arg("cast") = false, py::arg("prioritized") = py::none(), kOpenOrCreateDoc)
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
      .def("update_priorities", &update_priorities, py::arg("ids"), py::arg("priorities"), kUpdatePrioritiesDoc)
      .def(
          "clear",
          [](PyReplay& self) {
            const py::gil_scoped_release unlocked;
            self.buffer.clear();
          },
          kClearDoc)
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
          "prioritized", [](const PyReplay& self) { return self.buffer.options().prioritised; }, kPrioritizedDoc)
      .def_property_readonly(
          "terminal", [](const PyReplay& self) { return name_or_none(self.buffer.options().terminal); }, kTerminalDoc)
      .def_property_readonly(
          "truncated", [](const PyReplay& self) { return name_or_none(self.buffer.options().truncated); },
          kTruncatedDoc)
      .def_property_readonly(
          "row_bytes", [](const PyReplay& self) { return self.buffer.schema().stored_bytes(); }, kRowBytesDoc)
      .def_property_readonly(
          "seed", [](const PyReplay& self) { return self.sampler.seed(); }, kSeedDoc)
      .def_property(
          "draws", [](const PyReplay& self) { return self.sampler.draws(); },
          [](PyReplay& self, const py::object& draws) { self.sampler.restore(whole_from(draws, "[replay] draws")); },
          kDrawsDoc);
  bind_adding(module, buffer);
  bind_sampling(module, buffer);
  bind_episodes(module, buffer);
  bind_info(buffer);
  bind_snapshots(module, buffer);
}

}  // namespace quern::python
