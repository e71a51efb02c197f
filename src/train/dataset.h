// The text of a run as tokens: read, tokenised and split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/state.h"
#include "data/batch_source.h"
#include "data/fingerprint.h"
#include "data/text_pieces.h"
#include "data/token_stream.h"
#include "data/tokenizer.h"
#include "train/config.h"

namespace quern::train {

// Told many times a second what is being done and how far it is.
using Progress = std::function<void(std::string_view what, uint64_t done, uint64_t total)>;

struct OpenOptions {
  Progress progress = {};
  uint64_t validation_tokens = UINT64_MAX;  // of a stream, at most
  // Told what is not as one would expect it and can be mended before a run starts.
  std::function<void(const std::string& text)> warn = {};
};

struct Dataset {
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for token shards without a tokenizer.json beside them
  std::unique_ptr<data::TokenStream> stream;
  data::Split split;                     // of the stream; without a train part where there is a text
  std::optional<data::TextPieces> text;  // to learn from, for data.sampling = stream: `stream` is then held-out text
  uint64_t train_tokens = 0;             // of a text estimated
  data::Fingerprint fingerprint;
  uint32_t vocabulary = 0;
  double bytes_per_token = 0;   // of the text; 0 for token shards
  std::optional<double> floor;  // lowest expected loss on unseen text, in nats per token; known for stories only
};

// Reads what config.data names: text files, folders, JSON Lines, or token shards (data_kind.h); stories when it names
// nothing. The tokenizer is loaded from `tokenizer_file` if that exists, else made from
// the text; the caller saves it. Error for missing, empty or unreadable data, and for shards of which
// neither a tokenizer.json beside them nor model.vocabulary says how many tokens there are, and for less
// than a sequence in either part of the split, and for shards that another tokenizer made. For data.sampling = stream
// see stream_dataset.h.
Dataset open_dataset(const RunConfig& config, const std::filesystem::path& tokenizer_file,
                     const OpenOptions& options = {});

// The sequences of every step; `dataset` must outlive them.
std::unique_ptr<data::BatchSource> training_batches(const RunConfig& config, const Dataset& dataset);

// Error when `dataset`, which `config` names, is not the one that the run had when it wrote `state`.
void check_same_data(const RunConfig& config, const Dataset& dataset, const checkpoint::State& state);

// Error when so many tokens, that part of the data `name`, are too few for a single sequence.
void check_length(std::string_view name, std::string_view part, uint64_t tokens, uint64_t context);

// What messages call the data.
std::string data_name(const RunConfig& config);

// model.vocabulary where it is set, else the tokenizer's. Error when it is set too low.
uint32_t vocabulary_of(const RunConfig& config, const data::Tokenizer& tokenizer);

// Says that documents follow each other without a mark, where the tokenizer has no end of text.
std::string no_end_of_text(std::string_view data, const data::Tokenizer& tokenizer);

// A tokenizer made from text files, folders or JSON Lines. `vocabulary` is for bpe.
std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary,
                                                 const std::vector<std::filesystem::path>& paths);

struct TokenisedText {
  std::unique_ptr<data::TokenStream> stream;
  uint64_t bytes = 0;      // of text
  uint64_t documents = 0;  // that are not empty
};

// The tokens of other text with a tokenizer that is there. Where that has an end of text, it follows every document.
TokenisedText tokenise(const data::Tokenizer& tokenizer, const std::vector<std::filesystem::path>& paths);

}  // namespace quern::train
