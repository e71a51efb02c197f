// ReplayBuffer.save(), load() and the other functions that write or read a buffer's rows as a file.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "arguments.h"
#include "core/error.h"
#include "numbers.h"
#include "replay/npz.h"
#include "replay/snapshot.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "texts.h"

namespace quern::python {
namespace {

namespace fs = std::filesystem;
using replay::SnapshotOptions;
using replay::SnapshotResult;

// A snapshot that is being saved. Keeps the buffer alive.
struct Saving {
  Saving(std::shared_ptr<PyReplay> its_buffer, replay::BackgroundSave&& started)
      : buffer(std::move(its_buffer)), save(std::make_unique<replay::BackgroundSave>(std::move(started))) {}
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;
  ~Saving() {
    const py::gil_scoped_release unlocked;
    save.reset();  // waits, except in a child of os.fork(), where no thread is saving
  }

  bool done() const { return save->wait_for(0); }

  SnapshotResult result() const {
    const py::gil_scoped_release unlocked;
    while (!save->wait_for(0.05)) check_signals();
    return save->get();
  }

  std::shared_ptr<PyReplay> buffer;
  std::unique_ptr<replay::BackgroundSave> save;
};

SnapshotOptions options_of(const py::object& threads) { return {.threads = threads_from(threads)}; }

SnapshotResult save(const PyReplay& self, const fs::path& path, const py::object& threads) {
  const SnapshotOptions options = options_of(threads);
  const py::gil_scoped_release unlocked;
  return replay::save_snapshot(self.buffer, path, options);
}

std::unique_ptr<Saving> save_in_background(const std::shared_ptr<PyReplay>& self, const fs::path& path,
                                           const py::object& threads) {
  // Absolute: the current directory may change before the file is written.
  return std::make_unique<Saving>(
      self, replay::save_snapshot_in_background(self->buffer, fs::absolute(path), options_of(threads)));
}

SnapshotResult load(PyReplay& self, const fs::path& path, const py::object& threads) {
  const SnapshotOptions options = options_of(threads);
  const py::gil_scoped_release unlocked;
  return replay::load_snapshot(self.buffer, path, options);
}

SnapshotResult export_npz(const PyReplay& self, const fs::path& path) {
  const py::gil_scoped_release unlocked;
  return replay::export_npz(self.buffer, path);
}

SnapshotResult import_npz(PyReplay& self, const fs::path& path) {
  const py::gil_scoped_release unlocked;
  return replay::import_npz(self.buffer, path);
}

std::shared_ptr<PyReplay> from_snapshot(const fs::path& path, const py::object& capacity, const py::object& shared,
                                        const py::object& file, const py::object& seed) {
  const uint64_t rows = capacity.is_none() ? 0 : whole_from(capacity, "[replay] capacity", 1);
  const replay::Storage storage = storage_from(shared, file);
  const replay::Seed its_seed = seed_from(seed);
  const SnapshotOptions options = options_of(py::none());
  std::optional<replay::ReplayBuffer> buffer;
  {
    const py::gil_scoped_release unlocked;
    buffer.emplace(replay::from_snapshot(path, storage, rows, options));
  }
  return std::make_shared<PyReplay>(std::move(*buffer), storage, its_seed);
}

py::dict info(const fs::path& path) {
  const replay::SnapshotInfo found = replay::snapshot_info(path);
  py::dict result;
  result["columns"] = ColumnTypes(found.schema).to_dict();
  result["rows"] = found.rows;
  result["capacity"] = found.capacity;
  result["prioritised"] = found.prioritised;
  result["alpha"] = found.alpha;
  result["skipped"] = found.skipped;
  result["bytes"] = found.bytes;
  return result;
}

}  // namespace

void bind_snapshots(py::module_& module, PyReplayClass& buffer) {
  py::class_<SnapshotResult>(module, "SnapshotResult", kSnapshotResultDoc)
      .def_readonly("rows", &SnapshotResult::rows, kResultRowsDoc)
      .def_readonly("bytes", &SnapshotResult::bytes, kResultBytesDoc)
      .def_readonly("skipped", &SnapshotResult::skipped, kResultSkippedDoc)
      .def("__repr__", [](const SnapshotResult& self) {
        return fmt::format("<quern.SnapshotResult: {} rows, {} bytes, {} skipped>", self.rows, self.bytes,
                           self.skipped);
      });
  py::class_<Saving>(module, "Saving", kSavingDoc)
      .def("done", &Saving::done, kSavingDoneDoc)
      .def("result", &Saving::result, kSavingResultDoc);
  buffer.def("save", &save, py::arg("path"), py::arg("threads") = py::none(), kSaveDoc)
      .def("save_in_background", &save_in_background, py::arg("path"), py::arg("threads") = py::none(),
           kSaveInBackgroundDoc)
      .def("load", &load, py::arg("path"), py::arg("threads") = py::none(), kLoadSnapshotDoc)
      .def("export_npz", &export_npz, py::arg("path"), kExportNpzDoc)
      .def("import_npz", &import_npz, py::arg("path"), kImportNpzDoc)
      .def_static("from_snapshot", &from_snapshot, py::arg("path"), py::arg("capacity") = py::none(),
                  py::arg("shared") = py::none(), py::arg("file") = py::none(), py::arg("seed") = py::none(),
                  kFromSnapshotDoc);
  module.def("snapshot_info", &info, py::arg("path"), kSnapshotInfoDoc);
}

}  // namespace quern::python
