// ReplayBuffer.sample_sequences() and sample_n_step().
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "numbers.h"
#include "replay_buffer.h"
#include "replay_docs.h"
#include "replay_episode_docs.h"
#include "replay_wait.h"
#include "texts.h"

namespace quern::python {
namespace {

using Lead = ColumnTypes::Lead;

// Returned by sample_sequences(), which also accepts it as `out`, to be reused.
struct SequenceSample {
  py::dict arrays;
  py::array_t<uint64_t> ids, lengths, ages;
  py::array_t<bool> mask;
  py::array_t<float> weights;
};

// Returned by sample_n_step(), the same.
struct NStepSample {
  py::dict arrays, next;
  py::array_t<float> returns, discounts, weights;
  py::array_t<uint64_t> steps, ids, next_ids, ages;
};

template <typename T>
void fit(py::array_t<T>& array, const Lead& lead) {
  const bool same =
      static_cast<size_t>(array.ndim()) == lead.size() && std::equal(lead.begin(), lead.end(), array.shape());
  if (!same) array = py::array_t<T>(lead);
}

SequenceSample sample_sequences(PyReplay& self, const py::object& batch, const py::object& length,
                                const py::object& pad, const py::object& columns, const py::object& out,
                                const DrawArguments& draw) {
  constexpr const char* kWhere = "sample_sequences";
  replay::SequenceRequest request{.starts = request_from(self, batch, draw, kWhere),
                                  .length = whole_from(length, "[replay] sample_sequences: length", 1)};
  if (!py::isinstance<py::bool_>(pad))
    throw Error("[replay] {}: pad: expected True or False, found {}", kWhere, shown(pad));
  request.pad = pad.cast<bool>();
  if (request.length > self.buffer.capacity()) {  // before memory is allocated for it
    throw Error("[replay] {}: length: expected 1 to {} rows, found {}", kWhere, self.buffer.capacity(), request.length);
  }
  const double seconds = timeout_from(draw.timeout);
  const auto n = static_cast<py::ssize_t>(request.starts.rows);
  const Lead lead = {n, static_cast<py::ssize_t>(request.length)};
  const bool again = py::isinstance<SequenceSample>(out);
  SequenceSample result = again ? out.cast<SequenceSample>() : SequenceSample{};
  ColumnTypes::OutputArrays places = self.types.outputs_in(again ? py::object(result.arrays) : out, lead, kWhere,
                                                           self.types.selected(columns, "sample_sequences: columns"));
  result.arrays = std::move(places.arrays);
  fit(result.ids, lead);
  fit(result.mask, lead);
  fit(result.lengths, {n});
  fit(result.ages, {n});
  fit(result.weights, {n});
  const replay::SequenceArrays arrays{.columns = places.columns,
                                      .ids = result.ids.mutable_data(),
                                      .mask = result.mask.mutable_data(),
                                      .lengths = result.lengths.mutable_data(),
                                      .ages = result.ages.mutable_data(),
                                      .weights = result.weights.mutable_data()};
  waiting(seconds, [&](const replay::Wait& wait) { self.sampler.sample_sequences(request, arrays, wait); });
  return result;
}

// The selected columns: of the row after the steps, or of their last row.
struct Following {
  ColumnTypes::OutputArrays places;
  std::vector<std::byte*> next, last;
};

Following following_from(const PyReplay& self, const py::object& next, const py::object& last, const py::object& reuse,
                         py::ssize_t n) {
  const auto nothing = std::vector<bool>(self.buffer.schema().columns().size());
  const std::vector<bool> after = next.is_none() ? nothing : self.types.selected(next, "sample_n_step: next");
  const std::vector<bool> at_end = last.is_none() ? nothing : self.types.selected(last, "sample_n_step: last");
  std::vector<bool> wanted = after;
  for (size_t c = 0; c < wanted.size(); ++c) {
    if (after[c] && at_end[c]) {
      throw Error("[replay] sample_n_step: column {}: expected in next or in last, found in both",
                  self.buffer.schema().columns()[c].name);
    }
    wanted[c] = after[c] || at_end[c];
  }
  if (next.is_none() && last.is_none()) {
    throw Error(
        "[replay] sample_n_step: expected next=[names of the observation's columns], or last=[...] for columns "
        "that hold the observation after the step; found neither");
  }
  Following found{.places = self.types.outputs_in(reuse, {n}, "sample_n_step", wanted), .next = {}, .last = {}};
  for (size_t c = 0; c < wanted.size(); ++c) {
    found.next.push_back(after[c] ? found.places.columns[c] : nullptr);
    found.last.push_back(at_end[c] ? found.places.columns[c] : nullptr);
  }
  return found;
}

struct NStepArguments {
  const py::object &batch, &n, &gamma, &next, &last, &reward, &columns, &out;
};

NStepSample sample_n_step(PyReplay& self, const NStepArguments& given, const DrawArguments& draw) {
  constexpr const char* kWhere = "sample_n_step";
  const replay::NStepRequest request{.starts = request_from(self, given.batch, draw, kWhere),
                                     .n = whole_from(given.n, "[replay] sample_n_step: n", 1),
                                     .gamma = real_from(given.gamma, "[replay] sample_n_step: gamma"),
                                     .reward = self.types.index_of(given.reward, "sample_n_step: reward")};
  const double seconds = timeout_from(draw.timeout);
  if (!given.out.is_none() && !py::isinstance<NStepSample>(given.out)) {
    throw Error("[replay] sample_n_step: out: expected an earlier NStepSample, found {}", type_name(given.out));
  }
  const bool again = !given.out.is_none();
  NStepSample result = again ? given.out.cast<NStepSample>() : NStepSample{};
  const auto n = static_cast<py::ssize_t>(request.starts.rows);
  const auto reused = [&](const py::dict& arrays) { return again ? py::object(arrays) : py::object(py::none()); };
  ColumnTypes::OutputArrays places = self.types.outputs_in(
      reused(result.arrays), {n}, kWhere, self.types.selected(given.columns, "sample_n_step: columns"));
  Following following = following_from(self, given.next, given.last, reused(result.next), n);
  result.arrays = std::move(places.arrays);
  result.next = std::move(following.places.arrays);
  for (py::array_t<float>* array : {&result.returns, &result.discounts, &result.weights}) fit(*array, {n});
  for (py::array_t<uint64_t>* array : {&result.steps, &result.ids, &result.next_ids, &result.ages}) fit(*array, {n});
  const replay::NStepArrays arrays{.columns = places.columns,
                                   .next = following.next,
                                   .last = following.last,
                                   .returns = result.returns.mutable_data(),
                                   .discounts = result.discounts.mutable_data(),
                                   .steps = result.steps.mutable_data(),
                                   .ids = result.ids.mutable_data(),
                                   .next_ids = result.next_ids.mutable_data(),
                                   .ages = result.ages.mutable_data(),
                                   .weights = result.weights.mutable_data()};
  waiting(seconds, [&](const replay::Wait& wait) { self.sampler.sample_n_step(request, arrays, wait); });
  return result;
}

// What both results have in common with Sample.
template <typename Result>
py::class_<Result> bind_result(py::module_& module, const char* name, const char* doc) {
  py::class_<Result> type(module, name, doc);
  type.def("__getitem__", [](const Result& self, const py::object& key) { return nested_item(self.arrays, key); })
      .def("__len__", [](const Result& self) { return self.weights.size(); })
      .def("__iter__", [](const Result& self) { return self.arrays.attr("__iter__")(); })
      .def("__contains__", [](const Result& self, const py::object& key) { return self.arrays.contains(key); })
      .def(
          "keys", [](const Result& self) { return self.arrays.attr("keys")(); }, kSampleKeysDoc)
      .def(
          "values", [](const Result& self) { return self.arrays.attr("values")(); }, kSampleValuesDoc)
      .def(
          "items", [](const Result& self) { return self.arrays.attr("items")(); }, kSampleItemsDoc)
      .def_readonly("arrays", &Result::arrays, kSampleArraysDoc)
      .def_property_readonly(
          "nested", [](const Result& self) { return nested_from(self.arrays); }, kSampleNestedDoc)
      .def_readonly("ids", &Result::ids, kSampleIdsDoc)
      .def_readonly("ages", &Result::ages, kSampleAgesDoc)
      .def_readonly("weights", &Result::weights, kSampleWeightsDoc);
  return type;
}

}  // namespace

void bind_episodes(py::module_& module, PyReplayClass& buffer) {
  bind_result<SequenceSample>(module, "SequenceSample", kSequenceSampleDoc)
      .def_readonly("mask", &SequenceSample::mask, kSequenceMaskDoc)
      .def_readonly("lengths", &SequenceSample::lengths, kSequenceLengthsDoc)
      .def("__repr__", [](const SequenceSample& self) {
        return fmt::format("<quern.SequenceSample of {} sequences of {} rows>", self.ids.shape(0), self.ids.shape(1));
      });
  bind_result<NStepSample>(module, "NStepSample", kNStepSampleDoc)
      .def_readonly("next", &NStepSample::next, kNStepNextDoc)
      .def_readonly("returns", &NStepSample::returns, kNStepReturnsDoc)
      .def_readonly("discounts", &NStepSample::discounts, kNStepDiscountsDoc)
      .def_readonly("steps", &NStepSample::steps, kNStepStepsDoc)
      .def_readonly("next_ids", &NStepSample::next_ids, kNStepNextIdsDoc)
      .def("__repr__",
           [](const NStepSample& self) { return fmt::format("<quern.NStepSample of {} rows>", self.ids.size()); });
  buffer
      .def(
          "sample_sequences",
          [](PyReplay& self, const py::object& batch, const py::object& length, const py::object& pad,
             const py::object& columns, const py::object& out, const py::object& rule, const py::object& half_life,
             const py::object& beta, const py::object& timeout) {
            return sample_sequences(self, batch, length, pad, columns, out, {rule, half_life, beta, timeout});
          },
          py::arg("batch"), py::arg("length"), py::kw_only(), py::arg("pad") = false, py::arg("columns") = py::none(),
          py::arg("out") = py::none(), py::arg("rule") = py::none(), py::arg("half_life") = 0.0, py::arg("beta") = 0.4,
          py::arg("timeout") = py::none(), kSampleSequencesDoc)
      .def(
          "sample_n_step",
          [](PyReplay& self, const py::object& batch, const py::object& n, const py::object& gamma,
             const py::object& next, const py::object& last, const py::object& reward, const py::object& columns,
             const py::object& out, const py::object& rule, const py::object& half_life, const py::object& beta,
             const py::object& timeout) {
            return sample_n_step(self, {batch, n, gamma, next, last, reward, columns, out},
                                 {rule, half_life, beta, timeout});
          },
          py::arg("batch"), py::arg("n"), py::arg("gamma"), py::kw_only(), py::arg("next") = py::none(),
          py::arg("last") = py::none(), py::arg("reward") = "reward", py::arg("columns") = py::none(),
          py::arg("out") = py::none(), py::arg("rule") = py::none(), py::arg("half_life") = 0.0, py::arg("beta") = 0.4,
          py::arg("timeout") = py::none(), kSampleNStepDoc);
}

}  // namespace quern::python
