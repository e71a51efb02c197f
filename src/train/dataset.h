// The text of a run as tokens: read, tokenised and split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/state.h"
#include "data/batch_source.h"
#include "data/fingerprint.h"
#include "data/token_stream.h"
#include "data/tokenizer.h"
#include "train/config.h"

namespace quern::train {

struct Dataset {
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for token shards without a tokenizer.json beside them
  std::unique_ptr<data::TokenStream> stream;
  data::Split split;
  data::Fingerprint fingerprint;
  uint32_t vocabulary = 0;
  double bytes_per_token = 0;   // of the text; 0 for token shards
  std::optional<double> floor;  // nats per token that no model can go below on average; known for stories only
};

// Reads what config.data names: text files, folders, JSON Lines, or token shards (.bin files, or folders with nothing
// else); stories when it names nothing. The tokenizer is loaded from `tokenizer_file` if that exists, else made from
// the text; the caller saves it. Error for missing, empty or unreadable data, and for shards of which
// neither a tokenizer.json beside them nor model.vocabulary says how many tokens there are, and for less
// than a sequence in either part of the split.
Dataset open_dataset(const RunConfig& config, const std::filesystem::path& tokenizer_file);

// Error when `dataset`, which `config` names, is not the one that the run had when it wrote `state`.
void check_same_data(const RunConfig& config, const Dataset& dataset, const checkpoint::State& state);

// Error when `range`, that part of the data `name`, is too short for a single sequence.
void check_length(std::string_view name, std::string_view part, const data::TokenRange& range, uint64_t context);

// A tokenizer made from text files, folders or JSON Lines. `vocabulary` is for bpe.
std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary,
                                                 const std::vector<std::filesystem::path>& paths);

// The tokens of other text with a tokenizer that is there. Where that has an end of text, it follows every document.
std::unique_ptr<data::TokenStream> tokenise(const data::Tokenizer& tokenizer,
                                            const std::vector<std::filesystem::path>& paths, uint64_t* bytes);

}  // namespace quern::train
