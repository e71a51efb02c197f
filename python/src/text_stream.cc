#include "text_stream.h"

#include <pybind11/stl.h>

#include <string>

#include "arguments.h"
#include "core/error.h"
#include "generate/text_generation.h"
#include "model_docs.h"
#include "numbers.h"
#include "texts.h"

namespace quern::python {
namespace {

using train::TrainedModel;

// The arguments of generate() and stream().
TextRequest request_from(const std::optional<Text>& prompt, const py::object& tokens, const py::object& temperature,
                         const py::object& top_k, const py::object& top_p, const py::object& seed, bool ignore_end,
                         const py::object& threads) {
  const int64_t count = signed_from(tokens, "[generate] tokens");
  if (count < 0) throw Error("[generate] tokens: expected 0 or more, found {}", count);
  return {.prompt = prompt ? std::optional(prompt->value) : std::nullopt,
          .options = {.max_tokens = static_cast<size_t>(count),
                      .sampling = {.temperature = float_from(temperature, "[generate] temperature"),
                                   .top_k = signed_from(top_k, "[generate] top_k"),
                                   .top_p = float_from(top_p, "[generate] top_p"),
                                   .seed = whole_from(seed, "[generate] seed")},
                      .ignore_end = ignore_end},
          .threads = threads_from(threads)};
}

// Keeps the model alive.
struct TextStream {
  TextStream(std::shared_ptr<TrainedModel> its_model, const TextRequest& request)
      : trained(std::move(its_model)), text(*trained->model, trained->needed_tokenizer(), request) {}

  std::string next() { return text.next(); }

  std::shared_ptr<TrainedModel> trained;
  TextGeneration text;
};

std::unique_ptr<TextStream> stream(std::shared_ptr<TrainedModel> trained, const std::optional<Text>& prompt,
                                   const py::object& tokens, const py::object& temperature, const py::object& top_k,
                                   const py::object& top_p, const py::object& seed, bool ignore_end,
                                   const py::object& threads) {
  const TextRequest request = request_from(prompt, tokens, temperature, top_k, top_p, seed, ignore_end, threads);
  const py::gil_scoped_release unlocked;
  return std::make_unique<TextStream>(std::move(trained), request);
}

std::string generate(std::shared_ptr<TrainedModel> trained, const std::optional<Text>& prompt, const py::object& tokens,
                     const py::object& temperature, const py::object& top_k, const py::object& top_p,
                     const py::object& seed, bool ignore_end, const py::object& threads) {
  const TextRequest request = request_from(prompt, tokens, temperature, top_k, top_p, seed, ignore_end, threads);
  const py::gil_scoped_release unlocked;
  TextStream pieces(std::move(trained), request);
  std::string text;
  for (std::string piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    text += piece;
    check_signals();
  }
  return text;
}

std::string next_piece(TextStream& stream) {
  std::string piece;
  {
    const py::gil_scoped_release unlocked;
    piece = stream.next();
  }
  if (piece.empty()) throw py::stop_iteration();
  return piece;
}

}  // namespace

void bind_text_stream(py::module_& module) {
  py::class_<TextStream>(module, "TextStream", kTextStreamDoc)
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", next_piece);
}

void bind_generation(py::class_<TrainedModel, std::shared_ptr<TrainedModel>>& model) {
  const auto define = [&](const char* name, auto function, const char* doc) {
    const GenerateOptions usual;
    model.def(name, function, doc, py::arg("prompt") = py::none(), py::kw_only(), py::arg("tokens") = usual.max_tokens,
              py::arg("temperature") = usual.sampling.temperature, py::arg("top_k") = usual.sampling.top_k,
              py::arg("top_p") = usual.sampling.top_p, py::arg("seed") = usual.sampling.seed,
              py::arg("ignore_end") = usual.ignore_end, py::arg("threads") = py::none());
  };
  define("generate", generate, kGenerateDoc);
  define("stream", stream, kStreamDoc);
}

}  // namespace quern::python
