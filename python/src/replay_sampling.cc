// ReplayBuffer.sample(): draws rows into new arrays or into the caller's.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "numbers.h"
#include "replay/read_rows.h"
#include "replay/sampler.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "replay_wait.h"
#include "texts.h"

namespace quern::python {
namespace {

using replay::Rule;

constexpr std::array<std::pair<std::string_view, Rule>, 5> kRules = {
    {{"uniform", Rule::kUniform},
     {"without_replacement", Rule::kWithoutReplacement},
     {"prioritised", Rule::kPrioritised},
     {"prioritized", Rule::kPrioritised},
     {"recent", Rule::kRecent}}};

Rule rule_from(const PyReplay& self, const py::object& given, std::string_view where) {
  if (given.is_none()) return self.buffer.options().prioritised ? Rule::kPrioritised : Rule::kUniform;
  const bool text = py::isinstance<py::str>(given) || py::isinstance<py::bytes>(given);
  const std::string name = text ? given.cast<Text>().value : std::string();
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
  }
  throw Error("[replay] {}: rule: expected uniform, without_replacement, prioritised or recent, found {}", where,
              text ? name : shown(given));
}

// Returned by sample(), which also accepts it as `out`, to be reused.
struct Sample {
  py::dict arrays;
  py::array_t<uint64_t> ids, ages;
  py::array_t<float> weights;
  py::object mask = py::none();  // of get()
};

Sample places_for(const PyReplay& self, const py::object& out, const ColumnTypes::Lead& lead, std::string_view where,
                  std::vector<std::byte*>& columns) {
  const bool again = py::isinstance<Sample>(out);
  Sample sample = again ? out.cast<Sample>() : Sample{};
  ColumnTypes::OutputArrays places = self.types.outputs_in(again ? sample.arrays : out, lead, where);
  columns = std::move(places.columns);
  sample.arrays = std::move(places.arrays);
  if (!again) {
    sample.ids = py::array_t<uint64_t>(lead);
    sample.ages = py::array_t<uint64_t>(lead);
    sample.weights = py::array_t<float>(lead);
  }
  py::ssize_t rows = 1;
  for (const py::ssize_t extent : lead) rows *= extent;
  for (const py::array& array : {py::array(sample.ids), py::array(sample.ages), py::array(sample.weights)}) {
    if (array.size() == rows) continue;  // NumPy can shrink an array in place
    throw Error("[replay] {}: out: expected a sample of {} rows, found {}", where, rows, array.size());
  }
  sample.mask = py::none();
  return sample;
}

Sample sample(PyReplay& self, const py::object& n, const py::object& out, const py::object& rule,
              const py::object& half_life, const py::object& beta, const py::object& timeout) {
  const replay::SampleRequest request = request_from(self, n, {rule, half_life, beta, timeout}, "sample");
  const double seconds = timeout_from(timeout);
  std::vector<std::byte*> columns;
  Sample result = places_for(self, out, {static_cast<py::ssize_t>(request.rows)}, "sample", columns);
  const replay::SampleArrays arrays{.columns = columns,
                                    .ids = result.ids.mutable_data(),
                                    .ages = result.ages.mutable_data(),
                                    .weights = result.weights.mutable_data()};
  waiting(seconds, [&](const replay::Wait& wait) { self.sampler.sample(request, arrays, wait); });
  return result;
}

// One row by id, as {name: array}; None if it is no longer in the buffer.
py::object get_one(const PyReplay& self, const py::object& number) {
  const uint64_t id = whole_from(number, "[replay] get: id");
  const ColumnTypes::OutputArrays places = self.types.outputs_in(py::none(), {1}, "get");
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

// The rows of an array of ids, of any shape, as a Sample with a mask.
py::object get_all(const PyReplay& self, const py::object& given, const py::object& out) {
  const py::array_t<uint64_t> ids = array_from(given, py::dtype::of<uint64_t>(), "[replay] get: ids");
  const ColumnTypes::Lead lead(ids.shape(), ids.shape() + ids.ndim());
  std::vector<std::byte*> columns;
  Sample result = places_for(self, out, lead, "get", columns);
  py::array_t<bool> mask(lead);
  const auto count = static_cast<size_t>(ids.size());
  std::copy_n(ids.data(), count, result.ids.mutable_data());
  std::fill_n(result.weights.mutable_data(), count, 1.0f);
  auto* const flags = reinterpret_cast<uint8_t*>(mask.mutable_data());
  uint64_t* const ages = result.ages.mutable_data();
  const uint64_t* const wanted = result.ids.data();
  {
    const py::gil_scoped_release unlocked;
    replay::read_rows(self.buffer, {wanted, count}, columns, {flags, count});
    const uint64_t end = self.buffer.ring().window().end;
    for (size_t i = 0; i < count; ++i) ages[i] = flags[i] == 0 ? 0 : end - 1 - wanted[i];
  }
  result.mask = mask;
  return py::cast(std::move(result));
}

py::object get(const PyReplay& self, const py::object& id, const py::object& out) {
  const bool array = py::isinstance<py::array>(id) && py::reinterpret_borrow<py::array>(id).ndim() > 0;
  const bool sequence = PyList_Check(id.ptr()) != 0 || PyTuple_Check(id.ptr()) != 0 || py::isinstance<py::iterable>(id);
  if ((array || sequence) && !py::isinstance<py::str>(id) && !(py::isinstance<py::array>(id) && !array)) {
    return get_all(self, id, out);
  }
  if (!out.is_none()) throw Error("[replay] get: out: expected an array of ids with it, found {}", shown(id));
  return get_one(self, id);
}

}  // namespace

replay::SampleRequest request_from(const PyReplay& self, const py::object& number, const DrawArguments& arguments,
                                   std::string_view where) {
  const uint64_t n = whole_from(number, fmt::format("[replay] {}: n", where), 1);
  if (!std::in_range<py::ssize_t>(n)) {
    throw Error("[replay] {}: n: expected 1 to {}, found {}", where, std::numeric_limits<py::ssize_t>::max(), n);
  }
  return {.rows = n,
          .rule = rule_from(self, arguments.rule, where),
          .half_life = real_from(arguments.half_life, fmt::format("[replay] {}: half_life", where)),
          .beta = real_from(arguments.beta, fmt::format("[replay] {}: beta", where))};
}

void bind_sampling(py::module_& module, PyReplayClass& buffer) {
  py::class_<Sample>(module, "Sample", kSampleClassDoc)
      .def("__getitem__", [](const Sample& self, const py::object& name) { return nested_item(self.arrays, name); })
      .def("__len__", [](const Sample& self) { return self.ids.size(); })
      .def("__iter__", [](const Sample& self) { return self.arrays.attr("__iter__")(); })
      .def("__contains__", [](const Sample& self, const py::object& name) { return self.arrays.contains(name); })
      .def(
          "keys", [](const Sample& self) { return self.arrays.attr("keys")(); }, kSampleKeysDoc)
      .def(
          "values", [](const Sample& self) { return self.arrays.attr("values")(); }, kSampleValuesDoc)
      .def(
          "items", [](const Sample& self) { return self.arrays.attr("items")(); }, kSampleItemsDoc)
      .def_readonly("arrays", &Sample::arrays, kSampleArraysDoc)
      .def_readonly("ids", &Sample::ids, kSampleIdsDoc)
      .def_readonly("ages", &Sample::ages, kSampleAgesDoc)
      .def_readonly("weights", &Sample::weights, kSampleWeightsDoc)
      .def_readonly("mask", &Sample::mask, kSampleMaskDoc)
      .def_property_readonly(
          "nested", [](const Sample& self) { return nested_from(self.arrays); }, kSampleNestedDoc)
      .def("__repr__", [](const Sample& self) {
        return fmt::format("<quern.Sample of {} rows: {}>", self.ids.size(),
                           py::str(", ").attr("join")(self.arrays).cast<std::string>());
      });
  buffer.def("sample", &sample, py::arg("n"), py::kw_only(), py::arg("out") = py::none(), py::arg("rule") = py::none(),
             py::arg("half_life") = 0.0, py::arg("beta") = 0.4, py::arg("timeout") = py::none(), kSampleDoc);
  buffer.def("get", &get, py::arg("id"), py::kw_only(), py::arg("out") = py::none(), kGetDoc);
}

}  // namespace quern::python
