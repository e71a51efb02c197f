#include <quern/generate.h>

#include "api/model_impl.h"
#include "api/threads.h"
#include "generate/text_generation.h"

namespace quern {
namespace {

GenerateOptions options_of(const GenerationOptions& options, const train::TrainedModel& trained) {
  return {.max_tokens = options.tokens,
          .sampling = {.temperature = options.temperature,
                       .top_k = options.top_k,
                       .top_p = options.top_p,
                       .min_p = options.min_p,
                       .seed = options.seed,
                       .sample = options.sample,
                       .repeat_penalty = options.repeat_penalty,
                       .repeat_window = options.repeat_window},
          .end_tokens = trained.end_tokens,
          .ignore_end = options.ignore_end};
}

TextRequest request_of(const Model& model, const std::optional<std::string>& prompt, const GenerationOptions& options) {
  return {.prompt = prompt,
          .options = options_of(options, model.impl()->trained),
          .stop = options.stop,
          .threads = api::threads_from(options.threads)};
}

}  // namespace

class TextStream::Impl {
 public:
  Impl(const Model& model, const TextRequest& request)
      : model_(model.impl()), text_(*model_->trained.model, model_->trained.needed_tokenizer(), request) {}

  std::string next() { return text_.next(); }
  std::optional<Finish> finish() { return text_.finish(); }

 private:
  std::shared_ptr<const Model::Impl> model_;
  TextGeneration text_;
};

TextStream::TextStream(const Model& model, const std::optional<std::string>& prompt, const GenerationOptions& options)
    : impl_(std::make_unique<Impl>(model, request_of(model, prompt, options))) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::optional<std::string> TextStream::next() {
  std::string piece = impl_->next();
  if (piece.empty()) return std::nullopt;
  return piece;
}

std::optional<std::string_view> TextStream::finish() const {
  const std::optional<Finish> finish = impl_->finish();
  return finish ? std::optional(name_of(*finish)) : std::nullopt;
}

std::string generate(const Model& model, const std::optional<std::string>& prompt, const GenerationOptions& options) {
  TextStream stream(model, prompt, options);
  std::string text;
  while (const std::optional<std::string> piece = stream.next()) text += *piece;
  return text;
}

}  // namespace quern
