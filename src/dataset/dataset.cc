#include "dataset/dataset.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "config/data_sources.h"
#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/corpus.h"
#include "data/mixed_batches.h"
#include "data/shuffled_sequences.h"
#include "data/stories.h"
#include "data/stream_sequences.h"
#include "data/text_parts.h"
#include "data/token_buffer.h"
#include "data/token_sequences.h"
#include "data/token_shards.h"
#include "dataset/chat_dataset.h"
#include "dataset/data_kind.h"
#include "dataset/stream_dataset.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// The text of a source, to be tokenised before the first step.
struct TextInput {
  std::string name;
  double weight = 1;
  data::TextSources files = {};
};

// Rethrows an Error of a tokenizer, which does not know its input's origin, with the file and, if the document is cut
// into parts, the offset of the part.
[[noreturn]] void throw_in_file(const Error& error, const data::TextPart& part) {
  if (part.begin == 0) throw Error("[data] {}: {}", part.source.name(), error.what());
  throw Error("[data] {}: after byte {}: {}", part.source.name(), part.begin, error.what());
}

void check_any_text(uint64_t bytes, std::string_view name) {
  if (bytes == 0) throw Error("[data] {}: expected text, found only empty documents", name);
}

// Visits the text and reports how much of the files has been read.
void for_each_part(const data::TextSources& files, std::string_view what, const Progress& progress,
                   const data::PartVisitor& visit, data::CutRule rule = data::CutRule::kBeforeWhiteSpace) {
  uint64_t total = 0;
  for (const std::shared_ptr<const data::TextSource>& file : files) total += file->size();
  const auto visit_and_report = [&](const data::TextPart& part) {
    visit(part);
    if (progress) progress(what, std::min(part.bytes_read, total), total);
  };
  data::for_each_part(files, visit_and_report, rule);
}

std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary, const TextInput& text,
                                                 const Progress& progress) {
  uint64_t bytes = 0;
  switch (kind) {
    case TokenizerKind::kByte:
      return std::make_unique<data::ByteTokenizer>();
    case TokenizerKind::kChar: {
      data::CharTokenizerBuilder builder;
      for_each_part(text.files, "reading the text", progress, [&](const data::TextPart& part) {
        bytes += part.text.size();
        builder.add(part.text, part.source.name());
      });
      check_any_text(bytes, text.name);
      return builder.build(text.name);
    }
    case TokenizerKind::kBpe: {
      data::BpeTrainer trainer;
      for_each_part(text.files, "reading the text", progress, [&](const data::TextPart& part) {
        bytes += part.text.size();
        for (std::string_view rest = part.text; !rest.empty();) {  // same pieces as TokenBuffer::append_text()
          const size_t length = data::piece_length(rest);
          trainer.add(rest.substr(0, length));
          rest.remove_prefix(length);
        }
      });
      check_any_text(bytes, text.name);
      return trainer.train(data::with_end_of_text(vocabulary));
    }
    case TokenizerKind::kFile:
      break;
  }
  throw Error("[data] tokenizer: expected byte, char or bpe, found a file, which is loaded, not learned");
}

struct TextSize {
  uint64_t bytes = 0;
  uint64_t documents = 0;
};

// Appends the tokens of the text to `buffer`.
TextSize append_tokens(const data::Tokenizer& tokenizer, const TextInput& text, const Progress& progress,
                       data::TokenBuffer& buffer) {
  TextSize size;
  const std::optional<int32_t> begin = tokenizer.begin_of_text();
  const std::optional<int32_t> end = tokenizer.end_of_text();
  const auto append = [&](const data::TextPart& part) {
    size.bytes += part.text.size();
    size.documents += part.ends_document ? 1 : 0;
    if (begin && part.starts_document) buffer.append({&*begin, 1});
    bool starts = part.starts_document;
    const auto encode = [&](std::string_view piece, std::vector<int32_t>& ids) {
      try {
        tokenizer.encode_part_to(piece, starts, ids);
        starts = false;
      } catch (const Error& error) {
        throw_in_file(error, part);
      }
    };
    buffer.append_text(part.text, encode, tokenizer.cut_rule());
    if (end && part.ends_document) buffer.append({&*end, 1});
  };
  for_each_part(text.files, "tokenising the text", progress, append, tokenizer.cut_rule());
  check_any_text(size.bytes, text.name);
  return size;
}

// The tokenizer of shards is saved with the run, or next to the shards, if it exists at all.
fs::path tokenizer_of_shards(const fs::path& shards, const fs::path& of_run) {
  if (fs::exists(of_run)) return of_run;
  const fs::path beside = (fs::is_directory(shards) ? shards : shards.parent_path()) / "tokenizer.json";
  return fs::exists(beside) ? beside : fs::path();
}

std::vector<fs::path> as_paths(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

// The shards of all sources are one stream.
Dataset open_shards(const RunConfig& config, const std::vector<WeightedSource>& sources, const fs::path& of_run) {
  std::vector<fs::path> all;
  for (const WeightedSource& source : sources) all.insert(all.end(), source.paths.begin(), source.paths.end());
  for (const fs::path& path : all) {
    if (!fs::exists(path)) throw Error("[data] {}: expected a file or folder, found nothing", path.string());
  }
  Dataset dataset;
  dataset.vocabulary = static_cast<uint32_t>(config.model.vocabulary);
  const fs::path tokenizer_file = tokenizer_of_shards(all[0], of_run);
  if (!tokenizer_file.empty()) {
    dataset.tokenizer = data::Tokenizer::load(tokenizer_file.string());
    dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  }
  if (dataset.vocabulary == 0) {
    throw Error(
        "[data] {}: token shards need the size of their vocabulary; set model.vocabulary, or put their tokenizer.json "
        "next to them",
        all[0].string());
  }
  auto shards = std::make_unique<data::TokenShards>(all, dataset.vocabulary);
  if (dataset.tokenizer != nullptr) shards->check_tokenizer(dataset.tokenizer->digest(), tokenizer_file);
  uint64_t begin = 0;
  for (const WeightedSource& source : sources) {
    const bool is_last = dataset.sources.size() + 1 == sources.size();
    const uint64_t end =
        is_last ? shards->size() : begin + data::TokenShards(as_paths(source.paths), dataset.vocabulary).size();
    const data::TokenRange range{shards.get(), begin, end};
    dataset.sources.push_back({source_name(source.paths), source.weight,
                               data::split_by_position(range, config.data.validation_fraction), std::nullopt});
    begin = end;
  }
  dataset.stream = std::move(shards);
  return dataset;
}

Dataset open_text(const RunConfig& config, const fs::path& tokenizer_file, const std::vector<TextInput>& inputs,
                  const OpenOptions& options) {
  const bool known = fs::exists(tokenizer_file);
  TextInput all{.name = data_name(config)};
  for (const TextInput& input : inputs) all.files.insert(all.files.end(), input.files.begin(), input.files.end());
  Dataset dataset;
  dataset.tokenizer = known ? data::Tokenizer::load(tokenizer_file.string())
                            : learn_tokenizer(config.data.tokenizer, config.data.vocabulary, all, options.progress);
  auto buffer = std::make_unique<data::TokenBuffer>(static_cast<uint32_t>(dataset.tokenizer->vocabulary_size()));
  TextSize size;
  for (const TextInput& input : inputs) {
    const uint64_t begin = buffer->size();
    const TextSize added = append_tokens(*dataset.tokenizer, input, options.progress, *buffer);
    size = {size.bytes + added.bytes, size.documents + added.documents};
    const data::TokenRange range{buffer.get(), begin, buffer->size()};
    dataset.sources.push_back(
        {input.name, input.weight, data::split_by_position(range, config.data.validation_fraction), std::nullopt});
  }
  if (size.documents > 1 && !dataset.tokenizer->end_of_text() && options.warn) {
    options.warn(no_end_of_text(data_name(config), *dataset.tokenizer));
  }
  dataset.stream = std::move(buffer);
  dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  dataset.bytes_per_token =
      static_cast<double>(size.bytes) / static_cast<double>(std::max<uint64_t>(1, dataset.stream->size()));
  return dataset;
}

// All stories are one document for every tokenizer: the text itself marks where each one ends.
Dataset open_stories(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  std::string text = data::stories_text(config.train.seed, config.data.stories_bytes);
  TextInput stories{.name = "stories"};
  stories.files.push_back(std::make_shared<data::TextSource>("stories", std::move(text)));
  Dataset dataset = open_text(config, tokenizer_file, {stories}, options);
  dataset.floor = data::stories_entropy().nats_per_byte * dataset.bytes_per_token;
  return dataset;
}

Dataset open_files(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  const std::vector<WeightedSource> sources = weighted_sources(config);
  std::vector<fs::path> all;
  for (const WeightedSource& source : sources) all.insert(all.end(), source.paths.begin(), source.paths.end());
  if (are_shards(all)) return open_shards(config, sources, tokenizer_file);
  std::vector<TextInput> inputs;
  for (const WeightedSource& source : sources) {
    const data::Corpus corpus(as_paths(source.paths), text_options(config));
    inputs.push_back({source_name(source.paths), source.weight, open_text_files(corpus, options)});
  }
  return open_text(config, tokenizer_file, inputs, options);
}

}  // namespace

std::vector<data::HeldOut> Dataset::held_out() const {
  std::vector<data::HeldOut> parts;
  for (const DataSource& source : sources) {
    if (source.split.validation.size() > 0) parts.push_back({source.split.validation, source.weight});
  }
  return parts;
}

uint64_t Dataset::validation_tokens() const {
  uint64_t tokens = chat ? chat->held_out.tokens : 0;
  for (const DataSource& source : sources) tokens += source.split.validation.size();
  return tokens;
}

std::string source_name(const std::vector<std::string>& paths) {
  return paths.empty() ? "stories" : fmt::format("{}", fmt::join(paths, ", "));
}

std::string data_name(const RunConfig& config) {
  std::vector<std::string> names;
  for (const WeightedSource& source : weighted_sources(config)) names.push_back(source_name(source.paths));
  return fmt::format("{}", fmt::join(names, ", "));
}

data::TextOptions text_options(const RunConfig& config) {
  return {static_cast<data::Encoding>(config.data.encoding), config.data.field};
}
static_assert(static_cast<int>(TextEncoding::kBytes) == static_cast<int>(data::Encoding::kBytes));

data::TextSources open_text_files(const data::Corpus& corpus, const OpenOptions& options) {
  for (const data::Corpus::Folder& folder : corpus.folders()) {
    if (options.note) options.note(folder.read_text());
    if (const std::string skipped = folder.skipped_text(); options.warn && !skipped.empty()) {
      options.warn(skipped);
    }
  }
  data::TextSources sources = data::text_sources(corpus);
  for (const std::string& done : data::conversions_text(sources)) {
    if (options.warn) options.warn(done);
  }
  return sources;
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
  if (config.has_chat()) return open_chat(config, tokenizer_file, options);
  if (config.data.sampling == Sampling::kStream) return open_stream(config, tokenizer_file, options);
  const bool stories = config.data.paths.empty() && config.data.sources.empty();
  Dataset dataset = (stories ? open_stories : open_files)(config, tokenizer_file, options);
  std::vector<uint64_t> sizes;
  for (const DataSource& source : dataset.sources) {
    check_length(source.name, "training text", source.split.train.size(), config.model.context);
    if (config.data.validation_fraction > 0) {
      check_length(source.name, "held-out text", source.split.validation.size(), config.model.context);
    }
    dataset.train_tokens += source.split.train.size();
    sizes.push_back(source.split.train.size() + source.split.validation.size());
  }
  dataset.fingerprint = data::with_sizes(data::fingerprint(*dataset.stream), sizes);
  return dataset;
}

namespace {

std::unique_ptr<data::SequenceSource> stream_sequences(const RunConfig& config, const Dataset& dataset, size_t i) {
  auto sequences = std::make_unique<data::StreamSequences>(
      *dataset.sources[i].text, *dataset.tokenizer,
      data::StreamOptions{.context = static_cast<uint32_t>(config.model.context)});
  if (config.data.shuffle == 0) return sequences;
  return std::make_unique<data::ShuffledSequences>(
      std::move(sequences), data::ShuffleOptions{.seed = config.train.seed,
                                                 .window = static_cast<uint32_t>(config.data.shuffle),
                                                 .source = static_cast<uint32_t>(i)});
}

// Their tokens arrive from another machine.
class RemoteBatches final : public data::BatchSource {
 public:
  explicit RemoteBatches(size_t context) : context_(context) {}
  std::vector<ColumnSpec> columns() const override { return text_columns(context_); }
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override {
    throw Error("[data] the text of this run can be read by rank 0 only");
  }

 private:
  size_t context_;
};

}  // namespace

std::unique_ptr<data::BatchSource> training_batches(const RunConfig& config, const Dataset& dataset,
                                                    const DataStart& start) {
  if (dataset.remote) return std::make_unique<RemoteBatches>(config.model.context);
  if (dataset.chat) {
    const chat::ConversationBatchOptions options{.seed = config.train.seed,
                                                 .rows_per_step = static_cast<uint32_t>(config.sequences_per_step()),
                                                 .epochs = config.data.epochs,
                                                 .first_step = start.step,
                                                 .first_sequence = start.sequence};
    return std::make_unique<chat::ConversationBatches>(dataset.chat->train, options);
  }
  data::BatchOptions options{
      .seed = config.train.seed,
      .context = static_cast<uint32_t>(config.model.context),
      .sequences_per_step = static_cast<uint32_t>(config.sequences_per_step()),
      .order = config.data.sampling == Sampling::kEpoch ? data::Order::kEpoch : data::Order::kRandom,
      .first_step = start.step,
      .first_sequence = start.sequence};
  if (!dataset.has_position()) {
    return std::make_unique<data::TrainingBatches>(dataset.sources.front().split.train, options);
  }
  std::vector<data::MixedBatches::Source> sources;
  for (size_t i = 0; i < dataset.sources.size(); ++i) {
    const DataSource& source = dataset.sources[i];
    options.source = static_cast<uint32_t>(i);
    if (source.text) {
      sources.push_back({stream_sequences(config, dataset, i), source.weight});
    } else {
      sources.push_back({std::make_unique<data::TokenSequences>(source.split.train, options), source.weight});
    }
  }
  return std::make_unique<data::MixedBatches>(config.train.seed, std::move(sources));
}

uint64_t reader_bytes(const RunConfig& config, const Dataset& dataset) {
  const uint64_t window = config.data.shuffle * (config.model.context + 1) * sizeof(int32_t);
  return dataset.is_streaming() ? 2 * window * dataset.sources.size() : 0;
}

// Half of what `zstd -dc` (1 GB/s) and the same as what `gzip -dc` (0.14 GB/s) reach, on one core of a busy machine.
std::string resume_text(const Dataset& dataset, const data::StreamPosition& position) {
  constexpr double kZstdRate = 500e6, kOtherRate = 140e6;  // bytes of text per second
  std::vector<std::string> lines;
  for (size_t i = 0; i < dataset.sources.size(); ++i) {
    const DataSource& source = dataset.sources[i];
    if (!source.text || source.text->is_indexed()) continue;
    const data::SourcePosition at = position.of(i);
    const data::TextSource& file = source.text->file(at.file % source.text->files());
    const double bytes = static_cast<double>(at.piece) * data::TextPieces::kPieceBytes;
    const bool zstd = data::compression_of(file.name()) == data::Compression::kZstd;
    const double seconds = file.is_plain() ? 0 : bytes / (zstd ? kZstdRate : kOtherRate);
    if (seconds < 1) continue;
    lines.push_back(fmt::format("{}: reading {:.1f} GB again to get to the position of the checkpoint, about {:.0f} s",
                                file.name(), bytes / 1e9, seconds));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
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
      data_name(config), started.tokens, dataset.is_streaming() ? "bytes" : "tokens", started.hash, found.tokens,
      found.hash);
}

std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary,
                                                 const std::vector<fs::path>& paths, const data::TextOptions& text,
                                                 const Progress& progress) {
  const data::Corpus corpus = text_of(paths, "a tokenizer is learned from text", text);
  return learn_tokenizer(kind, vocabulary, TextInput{paths.front().string(), 1, data::text_sources(corpus)}, progress);
}

TokenisedText tokenise(const data::Tokenizer& tokenizer, const std::vector<fs::path>& paths,
                       const data::TextOptions& text, const OpenOptions& options) {
  const data::Corpus corpus = text_of(paths, "they are already tokenised", text);
  const TextInput input{paths.front().string(), 1, open_text_files(corpus, options)};
  auto buffer = std::make_unique<data::TokenBuffer>(static_cast<uint32_t>(tokenizer.vocabulary_size()));
  const TextSize size = append_tokens(tokenizer, input, options.progress, *buffer);
  return {std::move(buffer), size.bytes, size.documents};
}

}  // namespace quern::train
