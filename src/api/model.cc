#include <quern/model.h>

#include "api/model_impl.h"
#include "api/threads.h"
#include "api/tokenizer_impl.h"
#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "evaluate/evaluate.h"
#include "evaluate/evaluation_text.h"
#include "evaluate/sequences.h"

namespace quern {
namespace {

train::Sequences sequences_of(std::span<const int32_t> tokens, size_t length) {
  if (length == 0 || tokens.size() % length != 0) {
    throw Error("[model] tokens: expected a multiple of length {}, found {}", length, tokens.size());
  }
  return {tokens, tokens.size() / length, length};
}

}  // namespace

Model::Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Model Model::load(const std::filesystem::path& run, const std::function<void(const std::string&)>& on_warning) {
  const auto warn = [&](const std::string& text) {
    if (on_warning) on_warning(text);
  };
  return Model(std::make_shared<const Impl>(train::load_model(run, warn)));
}

std::filesystem::path Model::path() const { return impl_->trained.folder; }
std::string Model::config() const { return train::to_toml(impl_->trained.config); }
uint64_t Model::step() const { return impl_->trained.state.step; }
size_t Model::parameters() const { return impl_->trained.model->parameters().count(); }
size_t Model::context() const { return impl_->trained.model->config().context; }
size_t Model::max_context() const { return impl_->trained.model->config().positions_limit(); }
size_t Model::vocabulary() const { return impl_->trained.model->config().vocabulary; }
std::string Model::weights_hash() const { return checkpoint::weights_hash(impl_->trained.weights()); }

Tokenizer Model::tokenizer() const {
  const data::Tokenizer& tokenizer = impl_->trained.needed_tokenizer();
  return Tokenizer(std::make_shared<const Tokenizer::Impl>(std::shared_ptr<const data::Tokenizer>(impl_, &tokenizer)));
}

std::vector<float> Model::logits(std::span<const int32_t> tokens, size_t length, size_t threads) const {
  const train::Sequences sequences = sequences_of(tokens, length);
  std::vector<float> logits(tokens.size() * vocabulary());
  train::compute_logits(*impl_->trained.model, sequences, api::threads_from(threads), logits);
  return logits;
}

double Model::loss(std::span<const int32_t> tokens, size_t length, size_t threads) const {
  return train::compute_loss(*impl_->trained.model, sequences_of(tokens, length), api::threads_from(threads));
}

Evaluation Model::evaluate(const std::vector<std::filesystem::path>& paths, size_t threads) const {
  const train::Evaluation result = train::evaluate_text(impl_->trained, paths, api::threads_from(threads));
  return {.loss = result.loss,
          .perplexity = result.perplexity(),
          .bits_per_byte = result.bits_per_byte(),
          .tokens = result.tokens};
}

}  // namespace quern
