#include "dataset/stream_dataset.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "config/data_sources.h"
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

// The text of one source of a run.
struct StreamSource {
  std::string name;
  double weight = 1;
  data::TextSources files = {};
};

std::vector<StreamSource> sources_of(const RunConfig& config, const OpenOptions& options) {
  std::vector<StreamSource> sources;
  for (const WeightedSource& source : weighted_sources(config)) {
    sources.push_back({source_name(source.paths), source.weight});
    data::TextSources& files = sources.back().files;
    if (source.paths.empty()) {
      std::string text = data::stories_text(config.train.seed, config.data.stories_bytes);
      files = {std::make_shared<data::TextSource>("stories", std::move(text))};
    } else {
      const std::vector<fs::path> paths(source.paths.begin(), source.paths.end());
      constexpr std::string_view kWhy = "data.sampling = stream tokenises text: use random or epoch";
      files = open_text_files(text_of(paths, kWhy, text_options(config)), options);
    }
  }
  return sources;
}

data::TextSources all_files(const std::vector<StreamSource>& sources) {
  data::TextSources all;
  for (const StreamSource& source : sources) all.insert(all.end(), source.files.begin(), source.files.end());
  return all;
}

// Whether there may be more than one document. The number of documents in JSON Lines is unknown until all are read.
bool may_have_documents(const data::TextSources& sources) {
  return sources.size() > 1 || std::ranges::any_of(sources, [](const std::shared_ptr<const data::TextSource>& source) {
           return source->kind() == data::Corpus::Kind::kJsonLines;
         });
}

// Visits at most `max` pieces: evenly spaced ones of indexed text, otherwise the first ones.
void for_each_piece(const data::TextPieces& text, uint64_t max, const Progress& progress,
                    const data::TextPieces::Visitor& visit) {
  data::TextPieces::Raw raw;
  if (text.is_indexed()) {
    const uint64_t count = std::min(text.count(), max);
    for (uint64_t i = 0; i < count; ++i) {
      text.visit(text.count() / count * i + text.count() % count * i / count, raw, visit);
      if (progress) progress("reading the text", i + 1, count);
    }
    return;
  }
  data::PieceCursor cursor(text);
  for (uint64_t i = 0; i < max && cursor.round(cursor.next(raw)) == 0; ++i) {
    data::TextPieces::visit(raw, visit);
    if (progress) progress("reading the text", i + 1, std::max(i + 1, std::min<uint64_t>(max, 100'000)));
  }
}

std::unique_ptr<data::Tokenizer> learn_characters(const data::TextPieces& text, std::string_view name,
                                                  const Progress& progress) {
  data::CharTokenizerBuilder builder;
  for_each_piece(text, UINT64_MAX, progress, [&](const data::TextPieces::Span& span) {
    builder.add(span.text, span.begin == 0 ? span.source : fmt::format("{}: after byte {}", span.source, span.begin));
  });
  return builder.build(name);
}

std::unique_ptr<data::Tokenizer> learn_bpe(const data::TextPieces& text, uint64_t vocabulary,
                                           const Progress& progress) {
  data::BpeTrainer trainer;
  for_each_piece(text, kMaxSamples, progress, [&](const data::TextPieces::Span& span) { trainer.add(span.text); });
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
  double expansion = 1;  // bytes of text per byte of a compressed or converted file
};

// Tokenises pieces from the start until there are `wanted` tokens or no more pieces; appends to `buffer` if not null.
// Returns how many tokens there were.
uint64_t take_tokens(const data::TextPieces& text, const data::Tokenizer& tokenizer, uint64_t wanted,
                     const Progress& progress, data::TokenBuffer* buffer, Sample& sample) {
  if (text.empty()) return 0;
  std::vector<int32_t> tokens;
  data::TextPieces::Raw raw;
  data::PieceCursor cursor(text);
  uint64_t found = 0;
  for (uint64_t i = 0; found < wanted; ++i) {
    if (text.is_indexed() && i == text.count()) break;
    if (cursor.round(cursor.next(raw)) > 0) break;
    sample.bytes += tokens_of_piece(raw, tokenizer, tokens);
    sample.tokens += tokens.size();
    sample.in_files += raw.end - raw.begin;
    if (buffer != nullptr) buffer->append(std::span(tokens).first(std::min(tokens.size(), wanted - found)));
    found += std::min<uint64_t>(tokens.size(), wanted - found);
    if (progress) progress("tokenising held-out text", std::min(found, wanted), wanted);
  }
  if (cursor.bytes_read() > 0) {
    sample.expansion = static_cast<double>(cursor.text_read()) / static_cast<double>(cursor.bytes_read());
  }
  return found;
}

uint64_t bytes_of(const data::TextSources& files) {
  uint64_t bytes = 0;
  for (const std::shared_ptr<const data::TextSource>& file : files) bytes += file->size();
  return bytes;
}

// Splits a source and tokenises its held-out text; returns an estimate of the number of training tokens.
uint64_t add_source(const RunConfig& config, const StreamSource& source, const OpenOptions& options,
                    data::TokenBuffer& validation, Dataset& dataset) {
  auto [train, held_out] =
      data::TextPieces(source.files, dataset.tokenizer->cut_rule()).split(config.data.validation_fraction);
  Sample sample;
  const uint64_t context = config.model.context, begin = validation.size();
  const uint64_t first = take_tokens(train, *dataset.tokenizer, context + 1, {}, nullptr, sample);
  check_length(source.name, "training text", first, context);
  take_tokens(held_out, *dataset.tokenizer, options.validation_tokens, options.progress, &validation, sample);
  if (config.data.validation_fraction > 0) {
    check_length(source.name, "held-out text", validation.size() - begin, context);
  }
  const double bytes = train.is_indexed() ? static_cast<double>(train.bytes())
                                          : static_cast<double>(bytes_of(source.files)) * sample.expansion *
                                                (1 - config.data.validation_fraction);
  dataset.sources.push_back({source.name, source.weight, {{}, {&validation, begin, validation.size()}}, train});
  dataset.bytes_per_token = static_cast<double>(sample.bytes) / static_cast<double>(sample.tokens);
  return static_cast<uint64_t>(static_cast<double>(sample.tokens) / static_cast<double>(sample.in_files) * bytes);
}

// Error unless the tokenizer can encode all of the text. Only a char tokenizer may not.
void check_encodable(const data::TextPieces& text, const data::Tokenizer& tokenizer, const Progress& progress) {
  if (tokenizer.name() != "char") return;
  std::vector<int32_t> tokens;
  for_each_piece(text, UINT64_MAX, progress, [&](const data::TextPieces::Span& span) {
    try {
      tokens.clear();
      tokenizer.encode_document_to(span.text, tokens);
    } catch (const Error& error) {
      throw Error("[data] {}: {}", span.source, error.what());
    }
  });
}

}  // namespace

Dataset open_stream(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  const bool known = fs::exists(tokenizer_file);
  const std::vector<StreamSource> sources = sources_of(config, options);
  const data::TextSources files = all_files(sources);
  Dataset dataset;
  dataset.streaming = true;
  dataset.tokenizer =
      known ? data::Tokenizer::load(tokenizer_file.string()) : learn(config, data::TextPieces(files), options.progress);
  if (may_have_documents(files) && !dataset.tokenizer->end_of_text() && options.warn) {
    options.warn(no_end_of_text(data_name(config), *dataset.tokenizer));
  }
  if (options.check_text) check_encodable(data::TextPieces(files), *dataset.tokenizer, options.progress);
  dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  std::vector<uint64_t> sizes;
  for (const StreamSource& source : sources) sizes.push_back(source.files.size());
  dataset.fingerprint = data::with_sizes(data::fingerprint(files, dataset.tokenizer->to_json()), sizes);
  auto validation = std::make_unique<data::TokenBuffer>(dataset.vocabulary);
  for (const StreamSource& source : sources) {
    dataset.train_tokens += add_source(config, source, options, *validation, dataset);
  }
  if (config.data.paths.empty() && config.data.sources.empty()) {
    dataset.floor = data::stories_entropy().nats_per_byte * dataset.bytes_per_token;
  }
  dataset.stream = std::move(validation);
  return dataset;
}

}  // namespace quern::train
