// quern.load() and quern.Model.
#include "evaluate/load.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "chat.h"
#include "checkpoint/checkpoint.h"
#include "config.h"
#include "core/error.h"
#include "evaluate/evaluation_text.h"
#include "evaluate/import_adapters.h"
#include "evaluate/sequences.h"
#include "formats/import.h"
#include "generate/utf8_stream.h"
#include "model_docs.h"
#include "numbers.h"
#include "text_stream.h"
#include "texts.h"

namespace quern::python {
namespace {

using train::TrainedModel;

std::shared_ptr<TrainedModel> load(const std::filesystem::path& run, const py::object& checkpoint) {
  const std::string wanted = checkpoint_from(checkpoint);
  std::vector<std::string> warnings;
  std::shared_ptr<TrainedModel> trained;
  {
    const py::gil_scoped_release unlocked;
    trained = std::make_shared<TrainedModel>(train::load_model(
        run, [&](const std::string& text) { warnings.push_back(text); }, wanted));
  }
  for (const std::string& text : warnings) warn(text);
  return trained;
}

py::array_t<int32_t> encode(const TrainedModel& trained, const Text& given) {
  const std::string& text = given.value;
  std::vector<int32_t> ids;
  {
    const py::gil_scoped_release unlocked;
    ids = trained.needed_tokenizer().encode(text);
  }
  return py::array_t<int32_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
}

std::string decode(const TrainedModel& trained, const py::object& ids) {
  const Tokens tokens = tokens_from(ids);
  Utf8Stream text;
  const std::string whole = text.feed(trained.needed_tokenizer().decode(tokens.ids));
  return whole + text.finish();
}

py::array_t<float> logits(const TrainedModel& trained, const py::object& object, const py::object& threads) {
  const Tokens tokens = tokens_from(object);
  const size_t used = threads_from(threads);
  std::vector<size_t> shape = {tokens.T, trained.model->config().vocabulary};
  if (tokens.several) shape.insert(shape.begin(), tokens.count);
  py::array_t<float> out(shape);
  const std::span<float> values(out.mutable_data(), static_cast<size_t>(out.size()));
  const py::gil_scoped_release unlocked;
  train::compute_logits(*trained.model, {tokens.ids, tokens.count, tokens.T}, used, values);
  return out;
}

double loss(const TrainedModel& trained, const py::object& object, const py::object& threads) {
  const Tokens tokens = tokens_from(object);
  const size_t used = threads_from(threads);
  const py::gil_scoped_release unlocked;
  return train::compute_loss(*trained.model, {tokens.ids, tokens.count, tokens.T}, used);
}

py::dict evaluate(const TrainedModel& trained, const py::args& paths, const py::object& threads) {
  std::vector<std::filesystem::path> files;
  for (const py::handle path : paths) files.push_back(path_from(path, "[data] path"));
  const size_t used = threads_from(threads);
  train::Evaluation result;
  {
    const py::gil_scoped_release unlocked;
    result = train::evaluate_text(trained, files, used);
  }
  py::dict dict;
  dict["loss"] = result.loss;
  dict["perplexity"] = result.perplexity();
  dict["bits_per_byte"] = result.bits_per_byte();
  dict["tokens"] = result.tokens;
  return dict;
}

std::string weights_hash(const TrainedModel& trained) {
  const py::gil_scoped_release unlocked;
  return checkpoint::weights_hash(trained.weights());
}

py::dict state_dict(const TrainedModel& trained) {
  py::dict arrays;
  for (const checkpoint::TensorRef& tensor : trained.weights()) {
    arrays[py::str(tensor.name)] = py::array_t<float>(tensor.shape, tensor.values.data());  // copies
  }
  return arrays;
}

std::filesystem::path export_to(const TrainedModel& trained, const std::filesystem::path& path, const std::string& to,
                                const std::string& dtype, bool merge, bool force) {
  const formats::ExportOptions options{
      .to = formats::export_format(to), .type = formats::export_type(dtype), .merge = merge, .force = force};
  formats::ExportResult result;
  {
    const py::gil_scoped_release unlocked;
    result = trained.export_to(path, options);
  }
  for (const std::string& remark : result.remarks) warn("[export] " + remark);
  return path;
}

std::shared_ptr<TrainedModel> import_model(const std::filesystem::path& source, const std::filesystem::path& run,
                                           const py::object& base, const py::object& context) {
  formats::ImportOptions options;
  if (!context.is_none()) options.context = whole_from(context, "[import] context");
  formats::Imported imported;
  std::vector<std::string> warnings;
  const std::optional<std::filesystem::path> adapted =
      base.is_none() ? std::nullopt : std::optional(path_from(base, "[import] base"));
  {
    const py::gil_scoped_release unlocked;
    const auto keep = [&](const std::string& text) { warnings.push_back(text); };
    imported = adapted ? train::import_adapters(source, *adapted, run, options, keep)
                       : formats::import_model(source, run, options);
  }
  for (const std::string& text : warnings) warn(text);
  for (const std::string& remark : imported.remarks) warn("[import] " + remark);
  return load(run, py::none());
}

std::string repr(const TrainedModel& trained) {
  const nn::ModelConfig& model = trained.model->config();
  return fmt::format("<quern.Model {}: step {}, {} parameters, context {}, vocabulary {}>", trained.folder.string(),
                     trained.state.step, trained.model->parameters().count(), model.context, model.vocabulary);
}

}  // namespace

void bind_model(py::module_& module) {
  bind_text_stream(module);
  py::class_<TrainedModel, std::shared_ptr<TrainedModel>> model(module, "Model", kModelDoc);
  model
      .def_property_readonly(
          "path", [](const TrainedModel& self) { return self.folder; }, kPathDoc)
      .def_property_readonly(
          "config", [](const TrainedModel& self) { return to_dict(self.config); }, kConfigDoc)
      .def_property_readonly(
          "step", [](const TrainedModel& self) { return self.state.step; }, kStepDoc)
      .def_property_readonly(
          "parameters", [](const TrainedModel& self) { return self.model->parameters().count(); }, kParametersDoc)
      .def_property_readonly(
          "context", [](const TrainedModel& self) { return self.model->config().context; }, kContextDoc)
      .def_property_readonly(
          "max_context", [](const TrainedModel& self) { return self.model->config().positions_limit(); },
          kMaxContextDoc)
      .def_property_readonly(
          "vocabulary", [](const TrainedModel& self) { return self.model->config().vocabulary; }, kVocabularyDoc)
      .def_property_readonly("weights_hash", weights_hash, kWeightsHashDoc)
      .def("__repr__", repr);
  const py::arg_v threads = py::arg("threads") = py::none();
  model.def("encode", encode, kEncodeDoc, py::arg("text"))
      .def("decode", decode, kDecodeDoc, py::arg("ids"))
      .def("logits", logits, kLogitsDoc, py::arg("tokens"), py::kw_only(), threads)
      .def("loss", loss, kLossDoc, py::arg("tokens"), py::kw_only(), threads)
      .def("evaluate", evaluate, kEvaluateDoc, threads)
      .def("state_dict", state_dict, kStateDictDoc)
      .def("export", export_to, kExportDoc, py::arg("path"), py::kw_only(), py::arg("to") = "hf",
           py::arg("dtype") = "f32", py::arg("merge") = false, py::arg("force") = false);
  bind_generation(model);
  bind_chat(model);
  module.def("import_model", import_model, kImportDoc, py::arg("source"), py::arg("run"), py::kw_only(),
             py::arg("base") = py::none(), py::arg("context") = py::none());
  module.def("load", load, kLoadDoc, py::arg("run"), py::kw_only(), py::arg("checkpoint") = py::none());
}

}  // namespace quern::python
