#include "dataset/dataset.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/corpus.h"
#include "data/stories.h"
#include "data/stream_batches.h"
#include "data/token_buffer.h"
#include "data/token_shards.h"
#include "dataset/data_kind.h"
#include "dataset/stream_dataset.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// Visits every document of the text; can be called repeatedly.
using ForEachDocument = std::function<void(const data::Corpus::Visitor&)>;

// Reports how much of the text has been processed.
struct Meter {
  uint64_t total = 0;
  Progress progress = {};
  uint64_t done = 0;
  void add(std::string_view what, uint64_t bytes) {
    done += bytes;
    if (progress) progress(what, std::min(done, total), total);
  }
};

// Rethrows an Error of a tokenizer, which does not know its input's origin, with the file and, if the document is cut
// into pieces, the offset of the piece.
[[noreturn]] void throw_in_file(const Error& error, const fs::path& file, size_t begin) {
  if (begin == 0) throw Error("[data] {}: {}", file.string(), error.what());
  throw Error("[data] {}: after byte {}: {}", file.string(), begin, error.what());
}

void check_any_text(uint64_t bytes, std::string_view name) {
  if (bytes == 0) throw Error("[data] {}: expected text, found only empty documents", name);
}

std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary, std::string_view name,
                                                 Meter meter, const ForEachDocument& for_each) {
  switch (kind) {
    case TokenizerKind::kByte:
      return std::make_unique<data::ByteTokenizer>();
    case TokenizerKind::kChar: {
      data::CharTokenizerBuilder builder;
      uint64_t bytes = 0;
      for_each([&](std::string_view text, const fs::path& file) {
        bytes += text.size();
        builder.add(text, file.string());
        meter.add("reading the text", text.size());
      });
      check_any_text(bytes, name);
      return builder.build(name);
    }
    case TokenizerKind::kBpe: {
      data::BpeTrainer trainer;
      uint64_t bytes = 0;
      for_each([&](std::string_view text, const fs::path&) {
        bytes += text.size();
        while (!text.empty()) {  // same pieces as TokenBuffer::append_text(); no merges across pieces
          const std::string_view piece = text.substr(0, data::piece_length(text));
          trainer.add(piece);
          meter.add("reading the text", piece.size());
          text.remove_prefix(piece.size());
        }
      });
      check_any_text(bytes, name);
      return trainer.train(data::with_end_of_text(vocabulary));
    }
    case TokenizerKind::kFile:
      break;
  }
  throw Error("[data] tokenizer: expected byte, char or bpe, found a file, which is loaded, not learned");
}

TokenisedText tokenise(const data::Tokenizer& tokenizer, std::string_view name, Meter meter,
                       const ForEachDocument& for_each) {
  TokenisedText result;
  auto buffer = std::make_unique<data::TokenBuffer>(static_cast<uint32_t>(tokenizer.vocabulary_size()));
  const std::optional<int32_t> end = tokenizer.end_of_text();
  for_each([&](std::string_view text, const fs::path& file) {
    result.bytes += text.size();
    ++result.documents;
    buffer->append_text(text, [&](std::string_view piece, std::vector<int32_t>& ids) {
      try {
        tokenizer.encode_document_to(piece, ids);
      } catch (const Error& error) {
        throw_in_file(error, file, static_cast<size_t>(piece.data() - text.data()));
      }
      meter.add("tokenising the text", piece.size());
    });
    if (end) buffer->append({&*end, 1});
  });
  check_any_text(result.bytes, name);
  result.stream = std::move(buffer);
  return result;
}

// The tokenizer of shards is saved with the run, or next to the shards, if it exists at all.
fs::path tokenizer_of_shards(const fs::path& shards, const fs::path& of_run) {
  if (fs::exists(of_run)) return of_run;
  const fs::path beside = (fs::is_directory(shards) ? shards : shards.parent_path()) / "tokenizer.json";
  return fs::exists(beside) ? beside : fs::path();
}

Dataset open_shards(const RunConfig& config, const std::vector<fs::path>& paths, const fs::path& of_run) {
  for (const fs::path& path : paths) {
    if (!fs::exists(path)) throw Error("[data] {}: expected a file or folder, found nothing", path.string());
  }
  Dataset dataset;
  dataset.vocabulary = static_cast<uint32_t>(config.model.vocabulary);
  const fs::path tokenizer_file = tokenizer_of_shards(paths[0], of_run);
  if (!tokenizer_file.empty()) {
    dataset.tokenizer = data::Tokenizer::load(tokenizer_file.string());
    dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  }
  if (dataset.vocabulary == 0) {
    throw Error(
        "[data] {}: token shards need the size of their vocabulary; set model.vocabulary, or put their tokenizer.json "
        "next to them",
        paths[0].string());
  }
  auto shards = std::make_unique<data::TokenShards>(paths, dataset.vocabulary);
  if (dataset.tokenizer != nullptr) shards->check_tokenizer(dataset.tokenizer->digest(), tokenizer_file);
  dataset.stream = std::move(shards);
  return dataset;
}

Dataset open_text(const RunConfig& config, const fs::path& tokenizer_file, uint64_t size, const OpenOptions& options,
                  const ForEachDocument& for_each) {
  const Meter meter{size, options.progress};
  const bool known = fs::exists(tokenizer_file);
  Dataset dataset;
  dataset.tokenizer =
      known ? data::Tokenizer::load(tokenizer_file.string())
            : learn_tokenizer(config.data.tokenizer, config.data.vocabulary, data_name(config), meter, for_each);
  TokenisedText text = tokenise(*dataset.tokenizer, data_name(config), meter, for_each);
  if (!known && text.documents > 1 && !dataset.tokenizer->end_of_text() && options.warn) {
    options.warn(no_end_of_text(data_name(config), *dataset.tokenizer));
  }
  dataset.stream = std::move(text.stream);
  dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  dataset.bytes_per_token =
      static_cast<double>(text.bytes) / static_cast<double>(std::max<uint64_t>(1, dataset.stream->size()));
  return dataset;
}

// All stories are one document for every tokenizer: the text itself marks where each one ends.
Dataset open_stories(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  const std::string text = data::stories_text(config.train.seed, config.data.stories_bytes);
  Dataset dataset = open_text(config, tokenizer_file, text.size(), options,
                              [&](const data::Corpus::Visitor& visit) { visit(text, "stories"); });
  dataset.floor = data::stories_entropy().nats_per_byte * dataset.bytes_per_token;
  return dataset;
}

}  // namespace

std::string data_name(const RunConfig& config) {
  return config.data.paths.empty() ? "stories" : fmt::format("{}", fmt::join(config.data.paths, ", "));
}

std::string no_end_of_text(std::string_view data, const data::Tokenizer& tokenizer) {
  return fmt::format(
      "{}: documents are not separated, because {} tokenizers have no end-of-text token; choose bpe for a model that "
      "knows where a document ends",
      data, tokenizer.name());
}

uint32_t vocabulary_of(const RunConfig& config, const data::Tokenizer& tokenizer) {
  const auto size = static_cast<uint32_t>(tokenizer.vocabulary_size());
  if (config.model.vocabulary == 0) return size;
  if (config.model.vocabulary < size) {
    throw Error("[data] {}: model.vocabulary: expected at least {}, the tokenizer's, found {}", data_name(config), size,
                config.model.vocabulary);
  }
  return static_cast<uint32_t>(config.model.vocabulary);
}

fs::path given_tokenizer(const RunConfig& config) {
  if (config.data.tokenizer != TokenizerKind::kFile) return {};
  fs::path file = config.data.tokenizer_file;
  std::error_code ignored;  // reading the file reports the reason
  if (fs::is_directory(file, ignored)) file /= "tokenizer.json";
  if (fs::exists(file, ignored)) return file;
  throw Error("[data] data.tokenizer: expected byte, char, bpe or a tokenizer.json, found no file {}", file.string());
}

Dataset open_dataset(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  if (config.data.sampling == Sampling::kStream) return open_stream(config, tokenizer_file, options);
  const std::vector<fs::path> paths(config.data.paths.begin(), config.data.paths.end());
  Dataset dataset;
  if (paths.empty()) {
    dataset = open_stories(config, tokenizer_file, options);
  } else if (are_shards(paths)) {
    dataset = open_shards(config, paths, tokenizer_file);
  } else {
    const data::Corpus corpus(paths);
    dataset = open_text(config, tokenizer_file, corpus.bytes(), options,
                        [&](const data::Corpus::Visitor& visit) { corpus.for_each_document(visit); });
  }
  dataset.split = data::split_by_position(*dataset.stream, config.data.validation_fraction);
  check_length(data_name(config), "training text", dataset.split.train.size(), config.model.context);
  if (config.data.validation_fraction > 0) {
    check_length(data_name(config), "held-out text", dataset.split.validation.size(), config.model.context);
  }
  dataset.fingerprint = data::fingerprint(*dataset.stream);
  dataset.train_tokens = dataset.split.train.size();
  return dataset;
}

std::unique_ptr<data::BatchSource> training_batches(const RunConfig& config, const Dataset& dataset,
                                                    const DataStart& start) {
  const auto context = static_cast<uint32_t>(config.model.context);
  if (dataset.text) {
    return std::make_unique<data::StreamBatches>(*dataset.text, *dataset.tokenizer,
                                                 data::StreamOptions{.context = context});
  }
  const data::BatchOptions options{
      .seed = config.train.seed,
      .context = context,
      .sequences_per_step = static_cast<uint32_t>(config.train.batch * config.train.accumulation),
      .order = config.data.sampling == Sampling::kEpoch ? data::Order::kEpoch : data::Order::kRandom,
      .first_step = start.step,
      .first_sequence = start.sequence};
  return std::make_unique<data::TrainingBatches>(dataset.split.train, options);
}

void check_length(std::string_view name, std::string_view part, uint64_t tokens, uint64_t context) {
  if (tokens > context) return;
  throw Error("[data] {}: {}: expected at least {} tokens (a context of {} and the one after it), found {}", name, part,
              context + 1, context, tokens);
}

void check_same_data(const RunConfig& config, const Dataset& dataset, const data::Fingerprint& started) {
  const data::Fingerprint& found = dataset.fingerprint;
  if (found == started) return;
  throw Error(
      "[data] {}: changed since the run was started: expected {} {} with hash {:016x}, found {} with hash {:016x}",
      data_name(config), started.tokens, dataset.text ? "bytes" : "tokens", started.hash, found.tokens, found.hash);
}

std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary,
                                                 const std::vector<fs::path>& paths, const Progress& progress) {
  const data::Corpus corpus = text_of(paths, "a tokenizer is learned from text");
  return learn_tokenizer(kind, vocabulary, paths.front().string(), {corpus.bytes(), progress},
                         [&](const data::Corpus::Visitor& visit) { corpus.for_each_document(visit); });
}

TokenisedText tokenise(const data::Tokenizer& tokenizer, const std::vector<fs::path>& paths, const Progress& progress) {
  const data::Corpus corpus = text_of(paths, "they are already tokenised");
  return tokenise(tokenizer, paths.front().string(), {corpus.bytes(), progress},
                  [&](const data::Corpus::Visitor& visit) { corpus.for_each_document(visit); });
}

}  // namespace quern::train
