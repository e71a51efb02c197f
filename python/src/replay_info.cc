// ReplayBuffer.stats(), list() and info().
#include <pybind11/stl.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "core/error.h"
#include "replay/inspect.h"
#include "replay_buffer.h"
#include "replay_docs.h"

namespace quern::python {
namespace {

using replay::BufferInfo;
using replay::Storage;

py::dict stats(PyReplay& self) {
  std::optional<replay::BufferStats> found;
  {
    const py::gil_scoped_release unlocked;
    found = self.meter.read();
  }
  py::dict result;
  result["size"] = found->size;
  result["capacity"] = found->capacity;
  result["fill"] = found->fill;
  result["added"] = found->added;
  result["sampled"] = found->sampled;
  result["seconds"] = found->seconds;
  result["added_per_second"] = found->added_per_second;
  result["sampled_per_second"] = found->sampled_per_second;
  result["oldest_age"] = found->oldest_age;
  result["mean_age"] = found->mean_age;
  result["missing"] = found->missing;
  const auto number = [](const std::optional<double>& value) { return py::cast(value); };
  const auto& priorities = found->priorities;
  result["min_priority"] = number(priorities ? std::optional(priorities->min) : std::nullopt);
  result["mean_priority"] = number(priorities ? std::optional(priorities->mean) : std::nullopt);
  result["max_priority"] = number(priorities ? std::optional(priorities->max) : std::nullopt);
  result["balance"] = number(found->balance);
  result["episodes"] = py::cast(found->episodes);
  result["bytes"] = found->bytes;
  result["handles"] = found->handles;
  result["age_seconds"] = number(found->age_seconds);
  return result;
}

py::object name_or_none(const std::string& name) {
  return name.empty() ? py::object(py::none()) : py::object(py::str(name));
}

py::dict dict_of(const BufferInfo& found) {
  const bool shared = found.storage.kind == Storage::Kind::kShared;
  py::dict result;
  result["shared"] = shared ? py::object(py::str(found.storage.name)) : py::object(py::none());
  result["path"] = found.path;
  result["bytes"] = found.bytes;
  result["handles"] = found.handles;
  result["problem"] = name_or_none(found.problem);
  if (!found.description) return result;
  const replay::BufferOptions& options = found.description->options;
  result["columns"] = ColumnTypes(found.description->schema).to_dict();
  result["rows"] = found.rows;
  result["capacity"] = options.capacity;
  result["added"] = found.added;
  result["sampled"] = found.sampled;
  result["prioritised"] = options.prioritised;
  result["terminal"] = name_or_none(options.terminal);
  result["truncated"] = name_or_none(options.truncated);
  const double age = std::max(0.0, std::difftime(std::time(nullptr), static_cast<time_t>(found.created)));
  result["age_seconds"] = found.created > 0 ? py::object(py::float_(age)) : py::object(py::none());
  return result;
}

}  // namespace

void bind_info(PyReplayClass& buffer) {
  buffer.def("stats", &stats, kStatsDoc)
      .def_static(
          "list",
          [] {
            py::list all;
            for (const BufferInfo& found : replay::list_shared()) all.append(dict_of(found));
            return all;
          },
          kListDoc)
      .def_static(
          "info",
          [](const py::object& shared, const py::object& file) {
            const Storage storage = storage_from(shared, file);
            if (storage.kind == Storage::Kind::kPrivate)
              throw Error("[replay] info: expected shared= or file=, found neither");
            return dict_of(replay::inspect(storage));
          },
          py::arg("shared") = py::none(), py::arg("file") = py::none(), kInfoDoc);
}

}  // namespace quern::python
