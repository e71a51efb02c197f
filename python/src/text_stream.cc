#include "text_stream.h"

#include <pybind11/stl.h>

#include <atomic>
#include <string>

#include "arguments.h"
#include "core/error.h"
#include "generate/generate.h"
#include "generate/utf8_stream.h"
#include "model_docs.h"
#include "numbers.h"
#include "texts.h"

namespace quern::python {
namespace {

using train::TrainedModel;

// How a text is to be written, as the caller says it.
struct Request {
  Request(const std::optional<Text>& its_prompt, const py::object& tokens, const py::object& temperature,
          const py::object& top_k, const py::object& top_p, const py::object& seed, bool ignore_end,
          const py::object& its_threads)
      : prompt(its_prompt ? std::optional(its_prompt->value) : std::nullopt), threads(threads_from(its_threads)) {
    const int64_t count = signed_from(tokens, "[generate] tokens");
    if (count < 0) throw Error("[generate] tokens: expected 0 or more, found {}", count);
    options = {.max_tokens = static_cast<size_t>(count),
               .sampling = {.temperature = float_from(temperature, "[generate] temperature"),
                            .top_k = signed_from(top_k, "[generate] top_k"),
                            .top_p = float_from(top_p, "[generate] top_p"),
                            .seed = whole_from(seed, "[generate] seed")},
               .ignore_end = ignore_end};
  }

  std::vector<int32_t> tokens_of(const data::Tokenizer& tokenizer) const {
    return (prompt ? prompt_of(tokenizer, *prompt) : default_prompt(tokenizer)).tokens;
  }

  std::optional<std::string> prompt;
  size_t threads;
  GenerateOptions options;
};

class TextStream {
 public:
  TextStream(std::shared_ptr<TrainedModel> trained, const Request& request)
      : trained_(std::move(trained)),
        tokenizer_(trained_->needed_tokenizer()),
        decoder_(*trained_->model, {.threads = request.threads}),
        generation_(decoder_, tokenizer_, request.tokens_of(tokenizer_), request.options) {}

  // The characters that the next tokens complete, empty at the end. One caller at a time: Error for a second.
  std::string next() {
    if (busy_.test_and_set(std::memory_order_acquire)) throw Error("[generate] the stream is in use by another thread");
    const Free free{busy_};
    std::string piece;
    while (piece.empty() && !ended_) {
      const std::optional<int32_t> token = generation_.next();
      ended_ = !token;
      piece = token ? text_.feed(tokenizer_.bytes_of(*token)) : text_.finish();
    }
    return piece;
  }

 private:
  struct Free {
    std::atomic_flag& busy;
    ~Free() { busy.clear(std::memory_order_release); }  // pairs with the acquire of the next caller
  };

  std::shared_ptr<TrainedModel> trained_;
  const data::Tokenizer& tokenizer_;
  Decoder decoder_;
  Generation generation_;
  Utf8Stream text_;
  bool ended_ = false;
  std::atomic_flag busy_;
};

std::unique_ptr<TextStream> stream(std::shared_ptr<TrainedModel> trained, const std::optional<Text>& prompt,
                                   const py::object& tokens, const py::object& temperature, const py::object& top_k,
                                   const py::object& top_p, const py::object& seed, bool ignore_end,
                                   const py::object& threads) {
  const Request request(prompt, tokens, temperature, top_k, top_p, seed, ignore_end, threads);
  const py::gil_scoped_release unlocked;
  return std::make_unique<TextStream>(std::move(trained), request);
}

std::string generate(std::shared_ptr<TrainedModel> trained, const std::optional<Text>& prompt, const py::object& tokens,
                     const py::object& temperature, const py::object& top_k, const py::object& top_p,
                     const py::object& seed, bool ignore_end, const py::object& threads) {
  const Request request(prompt, tokens, temperature, top_k, top_p, seed, ignore_end, threads);
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
