// ReplayBuffer.sample(): draws rows into new arrays or into the caller's.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "replay/sampler.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "replay_wait.h"
#include "texts.h"

namespace quern::python {
namespace {

using replay::Rule;

constexpr std::array<std::pair<std::string_view, Rule>, 4> kRules = {
    {{"uniform", Rule::kUniform},
     {"without_replacement", Rule::kWithoutReplacement},
     {"prioritised", Rule::kPrioritised},
     {"recent", Rule::kRecent}}};

Rule rule_named(const std::string& name) {
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
  }
  throw Error("[replay] sample: rule: expected uniform, without_replacement, prioritised or recent, found {}", name);
}

// Returned by sample(), which also accepts it as `out`, to be reused.
struct Sample {
  py::dict arrays;
  py::array_t<uint64_t> ids, ages;
  py::array_t<float> weights;
};

Sample places_for(const PyReplay& self, const py::object& out, size_t rows, std::vector<std::byte*>& columns) {
  const bool again = py::isinstance<Sample>(out);
  Sample sample = again ? out.cast<Sample>() : Sample{};
  ColumnTypes::OutputArrays places = self.types.outputs_in(again ? sample.arrays : out, rows, "sample");
  columns = std::move(places.columns);
  sample.arrays = std::move(places.arrays);
  if (!again) {
    const auto count = static_cast<py::ssize_t>(rows);
    sample.ids = py::array_t<uint64_t>(count);
    sample.ages = py::array_t<uint64_t>(count);
    sample.weights = py::array_t<float>(count);
  }
  for (const py::array& array : {py::array(sample.ids), py::array(sample.ages), py::array(sample.weights)}) {
    if (static_cast<size_t>(array.size()) == rows) continue;  // NumPy can shrink an array in place
    throw Error("[replay] sample: out: expected a sample of {} rows, found {}", rows, array.size());
  }
  return sample;
}

Sample sample(PyReplay& self, const py::object& number, const py::object& out, const Text& rule,
              const py::object& half_life, const py::object& beta, const py::object& timeout) {
  const uint64_t n = whole_from(number, "[replay] sample: n", 1);
  if (!std::in_range<py::ssize_t>(n)) {
    throw Error("[replay] sample: n: expected 1 to {}, found {}", std::numeric_limits<py::ssize_t>::max(), n);
  }
  const double seconds = timeout_from(timeout);
  const replay::SampleRequest request{.rows = n,
                                      .rule = rule_named(rule.value),
                                      .half_life = real_from(half_life, "[replay] sample: half_life"),
                                      .beta = real_from(beta, "[replay] sample: beta")};
  std::vector<std::byte*> columns;
  Sample result = places_for(self, out, n, columns);
  const replay::SampleArrays arrays{.columns = columns,
                                    .ids = result.ids.mutable_data(),
                                    .ages = result.ages.mutable_data(),
                                    .weights = result.weights.mutable_data()};
  waiting(seconds, [&](const replay::Wait& wait) { self.sampler.sample(request, arrays, wait); });
  return result;
}

}  // namespace

void bind_sampling(py::module_& module, PyReplayClass& buffer) {
  py::class_<Sample>(module, "Sample", kSampleClassDoc)
      .def("__getitem__", [](const Sample& self, const py::object& name) { return self.arrays[name]; })
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
      .def("__repr__", [](const Sample& self) {
        return fmt::format("<quern.Sample of {} rows: {}>", self.ids.size(),
                           py::str(", ").attr("join")(self.arrays).cast<std::string>());
      });
  buffer.def("sample", &sample, py::arg("n"), py::kw_only(), py::arg("out") = py::none(), py::arg("rule") = "uniform",
             py::arg("half_life") = 0.0, py::arg("beta") = 0.4, py::arg("timeout") = py::none(), kSampleDoc);
}

}  // namespace quern::python
