#include <quern/tokenizer.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "api/tokenizer_impl.h"
#include "config/config.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "dataset/dataset.h"

namespace quern {
namespace {

std::shared_ptr<const Tokenizer::Impl> impl_of(std::unique_ptr<data::Tokenizer> tokenizer) {
  return std::make_shared<const Tokenizer::Impl>(std::move(tokenizer));
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Tokenizer Tokenizer::train(const std::vector<std::filesystem::path>& paths, const TokenizerOptions& options) {
  const std::vector<std::string_view> kinds = train::tokenizer_kind_names();
  if (std::find(kinds.begin(), kinds.end(), options.kind) == kinds.end()) {
    throw Error("[tokenizer] kind: expected byte, char or bpe, found {}{}", in_quotes(options.kind),
                train::did_you_mean(options.kind, kinds));
  }
  train::RunConfig config;  // validates the range of the vocabulary
  train::apply_value(config, "data.vocabulary", static_cast<int64_t>(options.vocabulary), "vocabulary");
  if (paths.empty()) throw Error("[tokenizer] train: expected text files or folders, found none");
  return Tokenizer(impl_of(train::learn_tokenizer(train::tokenizer_kind(options.kind), config.data.vocabulary, paths)));
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return Tokenizer(impl_of(data::Tokenizer::load_from(path.string())));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const { return impl_->tokenizer->encode(text); }
std::string Tokenizer::decode(std::span<const int32_t> ids) const { return impl_->tokenizer->decode(ids); }
void Tokenizer::save(const std::filesystem::path& path) const { impl_->tokenizer->save(path.string()); }
std::string Tokenizer::kind() const { return std::string(impl_->tokenizer->name()); }
int32_t Tokenizer::vocabulary_size() const { return impl_->tokenizer->vocabulary_size(); }
std::optional<int32_t> Tokenizer::end_of_text() const { return impl_->tokenizer->end_of_text(); }

}  // namespace quern
