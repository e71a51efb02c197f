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

constexpr uint64_t kMaxSamples = 1'000'000;

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

std::string whole_text(const std::shared_ptr<TrainedModel>& trained, const TextRequest& request) {
  const py::gil_scoped_release unlocked;
  TextStream pieces(trained, request);
  std::string text;
  for (std::string piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    text += piece;
    check_signals();
  }
  return text;
}

// A str, or with `samples` a list of so many.
py::object generate(const std::shared_ptr<TrainedModel>& trained, const std::optional<Text>& prompt,
                    const py::object& tokens, const py::object& temperature, const py::object& top_k,
                    const py::object& top_p, const py::object& seed, bool ignore_end, const py::object& threads,
                    const py::object& samples) {
  TextRequest request = request_from(prompt, tokens, temperature, top_k, top_p, seed, ignore_end, threads);
  if (samples.is_none()) return py::str(whole_text(trained, request));
  py::list texts;
  const uint64_t count = whole_from(samples, "[generate] samples", 1, kMaxSamples);
  for (; request.options.sampling.sample < count; ++request.options.sampling.sample) {
    texts.append(whole_text(trained, request));
  }
  return texts;
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
  const auto define = [&](const char* name, auto function, const char* doc, auto... more) {
    const GenerateOptions usual;
    model.def(name, function, doc, py::arg("prompt") = py::none(), py::kw_only(), py::arg("tokens") = usual.max_tokens,
              py::arg("temperature") = usual.sampling.temperature, py::arg("top_k") = usual.sampling.top_k,
              py::arg("top_p") = usual.sampling.top_p, py::arg("seed") = usual.sampling.seed,
              py::arg("ignore_end") = usual.ignore_end, py::arg("threads") = py::none(), more...);
  };
  define("generate", generate, kGenerateDoc, py::arg("samples") = py::none());
  define("stream", stream, kStreamDoc);
}

}  // namespace quern::python
