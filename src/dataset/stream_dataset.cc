#include "dataset/stream_dataset.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/corpus.h"
#include "data/stories.h"
#include "data/text_tokens.h"
#include "data/token_buffer.h"
#include "dataset/data_kind.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// 32 MiB, in which every word that deserves its own token occurs often enough. Counting runs at 45 to 70 MB/s and takes
// half a second; 200 MB would take three seconds and 100 GB half an hour.
constexpr uint64_t kMaxSamples = 512;

data::TextSources sources_of(const RunConfig& config) {
  if (config.data.paths.empty()) {
    std::string text = data::stories_text(config.train.seed, config.data.stories_bytes);
    return {std::make_shared<data::TextSource>("stories", std::move(text))};
  }
  const std::vector<fs::path> paths(config.data.paths.begin(), config.data.paths.end());
  return data::text_sources(text_of(paths, "data.sampling = stream tokenises text: use random or epoch"));
}

// Whether there may be more than one document. The number of documents in JSON Lines is unknown until all are read.
bool may_have_documents(const data::TextSources& sources) {
  return sources.size() > 1 || std::ranges::any_of(sources, [](const std::shared_ptr<const data::TextSource>& source) {
           return source->kind() == data::Corpus::Kind::kJsonLines;
         });
}

// Visits `count` evenly spaced pieces.
void for_each_piece(const data::TextPieces& text, uint64_t count, const Progress& progress,
                    const data::TextPieces::Visitor& visit) {
  std::string scratch;
  for (uint64_t i = 0; i < count; ++i) {
    text.visit(text.count() / count * i + text.count() % count * i / count, scratch, visit);
    if (progress) progress("reading the text", i + 1, count);
  }
}

std::unique_ptr<data::Tokenizer> learn_characters(const data::TextPieces& text, std::string_view name,
                                                  const Progress& progress) {
  data::CharTokenizerBuilder builder;
  for_each_piece(text, text.count(), progress, [&](const data::TextPieces::Span& span) {
    builder.add(span.text, span.begin == 0 ? span.source : fmt::format("{}: after byte {}", span.source, span.begin));
  });
  return builder.build(name);
}

std::unique_ptr<data::Tokenizer> learn_bpe(const data::TextPieces& text, uint64_t vocabulary,
                                           const Progress& progress) {
  data::BpeTrainer trainer;
  for_each_piece(text, std::min(text.count(), kMaxSamples), progress,
                 [&](const data::TextPieces::Span& span) { trainer.add(span.text); });
  if (progress) progress("learning a vocabulary", 0, 1);
  return trainer.train(data::with_end_of_text(vocabulary));
}

std::unique_ptr<data::Tokenizer> learn(const RunConfig& config, const data::TextPieces& text,
                                       const Progress& progress) {
  switch (config.data.tokenizer) {
    case TokenizerKind::kByte:
      return std::make_unique<data::ByteTokenizer>();
    case TokenizerKind::kChar:
      return learn_characters(text, data_name(config), progress);
    case TokenizerKind::kBpe:
      return learn_bpe(text, config.data.vocabulary, progress);
    case TokenizerKind::kFile:
      break;
  }
  throw Error("[data] tokenizer: expected byte, char or bpe, found a file, which is loaded, not learned");
}

// Statistics of a sample of the pieces.
struct Sample {
  uint64_t in_files = 0;  // bytes, including the JSON around the text
  uint64_t bytes = 0;     // of text
  uint64_t tokens = 0;
};

// Tokenises pieces from the start until there are `wanted` tokens or no more pieces; appends to `buffer` if not null.
void take_tokens(const data::TextPieces& text, const data::Tokenizer& tokenizer, uint64_t wanted,
                 const Progress& progress, data::TokenBuffer* buffer, Sample& sample) {
  std::string scratch;
  std::vector<int32_t> tokens;
  uint64_t found = 0, i = 0;
  for (; i < text.count() && found < wanted; ++i) {
    sample.bytes += tokens_of_piece(text, tokenizer, i, scratch, tokens);
    sample.tokens += tokens.size();
    if (buffer != nullptr) buffer->append(std::span(tokens).first(std::min(tokens.size(), wanted - found)));
    found += std::min<uint64_t>(tokens.size(), wanted - found);
    if (progress) progress("tokenising held-out text", i + 1, text.count());
  }
  sample.in_files += std::min(text.bytes(), i * data::TextPieces::kPieceBytes);
}

// Error unless the tokenizer can encode all of the text. Only a char tokenizer may not.
void check_encodable(const data::TextPieces& text, const data::Tokenizer& tokenizer, const Progress& progress) {
  if (tokenizer.name() != "char") return;
  std::string scratch;
  std::vector<int32_t> tokens;
  for (uint64_t i = 0; i < text.count(); ++i) {
    tokens_of_piece(text, tokenizer, i, scratch, tokens);
    if (progress) progress("reading the text", i + 1, text.count());
  }
}

}  // namespace

Dataset open_stream(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  const data::TextSources sources = sources_of(config);
  const data::TextPieces whole(sources);
  const bool known = fs::exists(tokenizer_file);
  Dataset dataset;
  dataset.tokenizer = known ? data::Tokenizer::load(tokenizer_file.string()) : learn(config, whole, options.progress);
  if (!known && may_have_documents(sources) && !dataset.tokenizer->end_of_text() && options.warn) {
    options.warn(no_end_of_text(data_name(config), *dataset.tokenizer));
  }
  if (options.check_text) check_encodable(whole, *dataset.tokenizer, options.progress);
  dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  dataset.fingerprint = data::fingerprint(sources, dataset.tokenizer->to_json());

  auto [train, held_out] = whole.split(config.data.validation_fraction);
  Sample sample;
  const uint64_t context = config.model.context;
  take_tokens(train, *dataset.tokenizer, context + 1, {}, nullptr, sample);
  check_length(data_name(config), "training text", sample.tokens, context);
  auto validation = std::make_unique<data::TokenBuffer>(dataset.vocabulary);
  take_tokens(held_out, *dataset.tokenizer, options.validation_tokens, options.progress, validation.get(), sample);
  if (config.data.validation_fraction > 0) {
    check_length(data_name(config), "held-out text", validation->size(), context);
  }
  dataset.bytes_per_token = static_cast<double>(sample.bytes) / static_cast<double>(sample.tokens);
  dataset.train_tokens = static_cast<uint64_t>(
      static_cast<double>(sample.tokens) / static_cast<double>(sample.in_files) * static_cast<double>(train.bytes()));
  if (config.data.paths.empty()) dataset.floor = data::stories_entropy().nats_per_byte * dataset.bytes_per_token;
  dataset.split.validation = {validation.get(), 0, validation->size()};
  dataset.stream = std::move(validation);
  dataset.text = std::move(train);
  return dataset;
}

}  // namespace quern::train
