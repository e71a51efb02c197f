#include "train/dataset.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/corpus.h"
#include "data/stories.h"
#include "data/token_buffer.h"
#include "data/token_shards.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// Visits every document of the text, as often as it is called.
using ForEachDocument = std::function<void(const data::DocumentVisitor&)>;

std::unique_ptr<data::Tokenizer> make_tokenizer(const RunConfig& config, const ForEachDocument& for_each) {
  switch (config.data.tokenizer) {
    case TokenizerKind::kByte:
      return std::make_unique<data::ByteTokenizer>();
    case TokenizerKind::kChar: {
      data::CharTokenizerBuilder builder;
      for_each([&](std::string_view text) { builder.add(text, "[data] text"); });
      return builder.build("[data] text");
    }
    case TokenizerKind::kBpe: {
      data::BpeTrainer trainer;
      for_each([&](std::string_view text) { trainer.add(text); });
      data::BpeTrainerOptions options;
      options.vocabulary_size = static_cast<int32_t>(config.data.vocabulary);
      return trainer.train(options);
    }
  }
  throw Error("[data] tokenizer: expected byte, char or bpe");
}

std::unique_ptr<data::TokenBuffer> fill_buffer(const data::Tokenizer& tokenizer, const ForEachDocument& for_each,
                                               uint64_t* bytes) {
  auto buffer = std::make_unique<data::TokenBuffer>(static_cast<uint32_t>(tokenizer.vocabulary_size()));
  const data::Encode encode = [&](std::string_view text, std::vector<int32_t>& ids) { tokenizer.encode_to(text, ids); };
  for_each([&](std::string_view text) {
    *bytes += text.size();
    buffer->append_text(text, encode);
  });
  return buffer;
}

bool is_shards(const fs::path& path) {
  if (!fs::is_directory(path)) return path.extension() == ".bin";
  const fs::directory_iterator files(path);
  return std::any_of(begin(files), end(files), [](const auto& file) { return file.path().extension() == ".bin"; });
}

Dataset open_shards(const RunConfig& config, const std::vector<fs::path>& paths) {
  if (config.model.vocabulary == 0) {
    throw Error("[data] {}: token shards need the size of their vocabulary; set model.vocabulary", paths[0].string());
  }
  Dataset dataset;
  dataset.vocabulary = static_cast<uint32_t>(config.model.vocabulary);
  dataset.stream = std::make_unique<data::TokenShards>(paths, dataset.vocabulary);
  return dataset;
}

Dataset open_text(const RunConfig& config, const fs::path& tokenizer_file, const ForEachDocument& for_each) {
  Dataset dataset;
  dataset.tokenizer =
      fs::exists(tokenizer_file) ? data::Tokenizer::load(tokenizer_file.string()) : make_tokenizer(config, for_each);
  uint64_t bytes = 0;
  dataset.stream = fill_buffer(*dataset.tokenizer, for_each, &bytes);
  const uint32_t size = static_cast<uint32_t>(dataset.tokenizer->vocabulary_size());
  dataset.vocabulary = config.model.vocabulary == 0 ? size : static_cast<uint32_t>(config.model.vocabulary);
  if (dataset.vocabulary < size) {
    throw Error("[data] model.vocabulary: expected at least {}, the tokenizer's, found {}", size, dataset.vocabulary);
  }
  dataset.bytes_per_token =
      static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, dataset.stream->size()));
  return dataset;
}

Dataset open_stories(const RunConfig& config, const fs::path& tokenizer_file) {
  const std::string text = data::stories_text(config.train.seed, config.data.stories_bytes);
  Dataset dataset = open_text(config, tokenizer_file, [&](const data::DocumentVisitor& visit) { visit(text); });
  dataset.floor = data::stories_entropy().nats_per_byte * dataset.bytes_per_token;
  return dataset;
}

}  // namespace

Dataset open_dataset(const RunConfig& config, const fs::path& tokenizer_file) {
  const std::vector<fs::path> paths(config.data.paths.begin(), config.data.paths.end());
  Dataset dataset;
  if (paths.empty()) {
    dataset = open_stories(config, tokenizer_file);
  } else if (std::all_of(paths.begin(), paths.end(), is_shards)) {
    dataset = open_shards(config, paths);
  } else {
    const data::Corpus corpus(paths);
    dataset =
        open_text(config, tokenizer_file, [&](const data::DocumentVisitor& visit) { corpus.for_each_document(visit); });
  }
  dataset.split = data::split_by_position(*dataset.stream, config.data.validation_fraction);
  return dataset;
}

std::unique_ptr<data::TokenStream> tokenise(const data::Tokenizer& tokenizer, const std::vector<fs::path>& paths,
                                            uint64_t* bytes) {
  const data::Corpus corpus(paths);
  *bytes = 0;
  return fill_buffer(
      tokenizer, [&](const data::DocumentVisitor& visit) { corpus.for_each_document(visit); }, bytes);
}

}  // namespace quern::train
