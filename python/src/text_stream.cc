#include "text_stream.h"

#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "arguments.h"
#include "core/error.h"
#include "generate/text_generation.h"
#include "generation_arguments.h"
#include "model_docs.h"
#include "numbers.h"
#include "texts.h"

namespace quern::python {
namespace {

using train::TrainedModel;

constexpr uint64_t kMaxSamples = 1'000'000;

// The type of the value of an argument of any type.
template <typename Argument>
using Object = py::object;

// The arguments of generate() and stream() except the prompt.
struct Arguments {
  py::object tokens;
  SamplingArguments sampling;
  py::object stop, threads;
  bool ignore_end;
};

// A list of str; None for an empty one. A str is refused: as a list of its characters, it would stop at any of them.
std::vector<std::string> stop_from(const py::object& stop) {
  constexpr const char* kWhat = "[generate] stop";
  if (stop.is_none()) return {};
  if (!py::isinstance<py::list>(stop) && !py::isinstance<py::tuple>(stop)) {
    throw Error("{}: expected a list of str, found {}", kWhat, shown(stop));
  }
  std::vector<std::string> texts;
  for (const py::handle text : stop) {
    if (!py::isinstance<py::str>(text)) throw Error("{}: expected a list of str, found {} in it", kWhat, shown(text));
    texts.push_back(text_from(text, kWhat));
  }
  return texts;
}

TextRequest request_from(const TrainedModel& trained, const std::optional<Text>& prompt, const Arguments& arguments) {
  return {.prompt = prompt ? std::optional(prompt->value) : std::nullopt,
          .options = {.max_tokens = token_limit_from(arguments.tokens),
                      .sampling = sampling_from(arguments.sampling),
                      .end_tokens = trained.end_tokens,
                      .ignore_end = arguments.ignore_end},
          .stop = stop_from(arguments.stop),
          .threads = threads_from(arguments.threads),
          .on_block = [](size_t, size_t) { check_signals(); }};
}

// Keeps the model alive.
struct TextStream {
  TextStream(std::shared_ptr<TrainedModel> its_model, const TextRequest& request)
      : trained(std::move(its_model)), text(*trained->model, trained->needed_tokenizer(), request) {}

  std::string next() { return text.next(); }
  std::optional<std::string_view> finish() {
    const std::optional<Finish> reason = text.finish();
    return reason ? std::optional(name_of(*reason)) : std::nullopt;
  }

  std::shared_ptr<TrainedModel> trained;
  TextGeneration text;
};

std::unique_ptr<TextStream> stream(std::shared_ptr<TrainedModel> trained, const std::optional<Text>& prompt,
                                   const Arguments& arguments) {
  const TextRequest request = request_from(*trained, prompt, arguments);
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
                    const Arguments& arguments, const py::object& samples) {
  TextRequest request = request_from(*trained, prompt, arguments);
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
      .def("__next__", next_piece)
      .def_property_readonly("finish", &TextStream::finish, kFinishDoc);
}

void bind_generation(py::class_<TrainedModel, std::shared_ptr<TrainedModel>>& model) {
  // `call` takes the model, the prompt, Arguments, and the values of `more`.
  const auto define = [&]<typename... More>(const char* name, auto call, const char* doc, const More&... more) {
    const GenerateOptions usual;
    model.def(
        name,
        [call](std::shared_ptr<TrainedModel> trained, const std::optional<Text>& prompt, py::object tokens,
               py::object temperature, py::object top_k, py::object top_p, py::object min_p, py::object repeat_penalty,
               py::object repeat_window, py::object stop, py::object seed, bool ignore_end, py::object threads,
               Object<More>... values) {
          const SamplingArguments sampling{temperature, top_k, top_p, min_p, repeat_penalty, repeat_window, seed};
          const Arguments arguments{tokens, sampling, stop, threads, ignore_end};
          return call(std::move(trained), prompt, arguments, values...);
        },
        doc, py::arg("prompt") = py::none(), py::kw_only(), py::arg("tokens") = usual.max_tokens,
        py::arg("temperature") = usual.sampling.temperature, py::arg("top_k") = usual.sampling.top_k,
        py::arg("top_p") = usual.sampling.top_p, py::arg("min_p") = usual.sampling.min_p,
        py::arg("repeat_penalty") = usual.sampling.repeat_penalty,
        py::arg("repeat_window") = usual.sampling.repeat_window, py::arg("stop") = py::none(),
        py::arg("seed") = usual.sampling.seed, py::arg("ignore_end") = usual.ignore_end,
        py::arg("threads") = py::none(), more...);
  };
  define("generate", generate, kGenerateDoc, py::arg("samples") = py::none());
  define("stream", stream, kStreamDoc);
}

}  // namespace quern::python
