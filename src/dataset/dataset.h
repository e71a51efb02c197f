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

#include "chat/conversation_batches.h"
#include "chat/training_sequences.h"
#include "config/config.h"
#include "data/batch_source.h"
#include "data/fingerprint.h"
#include "data/text_pieces.h"
#include "data/text_source.h"
#include "data/token_stream.h"
#include "data/tokenizer.h"

namespace quern::train {

// Called many times a second with the current activity and its progress.
using Progress = std::function<void(std::string_view what, uint64_t done, uint64_t total)>;

struct OpenOptions {
  Progress progress = {};
  uint64_t validation_tokens = UINT64_MAX;  // maximum for data.sampling = stream
  // data.sampling = stream: encode all of the text once, so that an Error about text that a tokenizer learned from
  // other text cannot encode comes before the first step. For other sampling this is always so.
  bool check_text = false;
  bool resumed = false;  // the tokenizer's folder is that of the run, which has the chat template
  // Called for what the user may want to change before the run starts: problems, skipped files, conversions.
  std::function<void(const std::string& text)> warn = {};
  // Called with what was found, such as the files of a directory.
  std::function<void(const std::string& text)> note = {};
};

// One of the sources that a run draws sequences from.
struct DataSource {
  std::string name;
  double weight = 1;
  data::Split split;                     // of Dataset::stream; the train part is empty if there is a text
  std::optional<data::TextPieces> text;  // training text, for data.sampling = stream
};

// Conversations, for data.format = chat.
struct ChatData {
  chat::SequenceSummary summary, held_out;
  std::string template_text;  // of the chat template; empty if there is none
  std::string kinds;          // a line for each file: its name and what its records are
  chat::ConversationRows train;
  std::optional<chat::ConversationRows> validation;
};

struct Dataset {
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for token shards without a tokenizer.json next to them
  std::unique_ptr<data::TokenStream> stream;   // of all sources, one after the other; held-out text only if streaming
  std::vector<DataSource> sources;             // at least one
  uint64_t train_tokens = 0;                   // an estimate if streaming
  data::Fingerprint fingerprint;
  uint32_t vocabulary = 0;
  double bytes_per_token = 0;    // 0 for token shards
  std::optional<double> floor;   // lowest expected loss on unseen text, in nats per token; known for stories only
  bool streaming = false;        // the training text is tokenised during training
  std::optional<ChatData> chat;  // instead of a stream and its sources
  bool remote = false;           // the training text is on another machine (remote_dataset.h)

  bool is_streaming() const { return streaming; }
  // Whether the sequences of a step depend on the ones drawn before, so that the position must be saved.
  bool has_position() const { return is_streaming() || sources.size() > 1; }
  // Of text; empty if nothing was held out.
  std::vector<data::HeldOut> held_out() const;
  uint64_t validation_tokens() const;
};

// Opens the data that config.data names: text files, directories, JSON Lines or token shards (data_kind.h), one or
// several sources of them, or generated stories if it names nothing. The tokenizer is loaded from `tokenizer_file` if
// that exists, otherwise learned from the text; the caller saves it. Error if data is missing, empty or unreadable, if
// either part of the split is shorter than a sequence, if the vocabulary size of shards is unknown (neither a
// tokenizer.json next to them nor model.vocabulary), or if shards were made with a different tokenizer. For
// data.sampling = stream, see stream_dataset.h.
Dataset open_dataset(const RunConfig& config, const std::filesystem::path& tokenizer_file,
                     const OpenOptions& options = {});

// The file that data.tokenizer names, for open_dataset() of a new run; empty if a tokenizer is to be learned. A
// directory stands for its tokenizer.json. Error if there is none.
std::filesystem::path given_tokenizer(const RunConfig& config);

// Where the sequences of a run continue: the step that draws them, and how many were drawn before it.
struct DataStart {
  uint32_t step = 0;
  uint64_t sequence = 0;
};

// The training sequences of every step from `start` on; `dataset` must outlive them.
std::unique_ptr<data::BatchSource> training_batches(const RunConfig& config, const Dataset& dataset,
                                                    const DataStart& start = {});

// Memory of the readers of the training text beyond that of a run in text order: windows of data.shuffle.
uint64_t reader_bytes(const RunConfig& config, const Dataset& dataset);

// A line that says how long it takes to decompress the data up to `position`, where a run resumes; empty if that takes
// less than about a second.
std::string resume_text(const Dataset& dataset, const data::StreamPosition& position);

// Error if `dataset`, opened from `config`, differs from the data the run had when it was started.
void check_same_data(const RunConfig& config, const Dataset& dataset, const data::Fingerprint& started);

// Error if `tokens`, the length of `part` of the data `name`, is too short for one sequence.
void check_length(std::string_view name, std::string_view part, uint64_t tokens, uint64_t context);

// The names of the data and of its sources in messages.
std::string data_name(const RunConfig& config);
std::string source_name(const std::vector<std::string>& paths);

// How config says to read text files.
data::TextOptions text_options(const RunConfig& config);

// The text in `paths`. `options` are told what is converted or skipped if `is_new`: a resumed run has said it before.
data::TextSources open_text_files(const data::Corpus& corpus, const OpenOptions& options);

// model.vocabulary if it is set, otherwise the tokenizer's size. Error if it is set too low.
uint32_t vocabulary_of(const RunConfig& config, const data::Tokenizer& tokenizer);

// A warning that documents are not separated, for tokenizers without an end-of-text token.
std::string no_end_of_text(std::string_view data, const data::Tokenizer& tokenizer);

// Learns a tokenizer from text files, directories or JSON Lines. `vocabulary` is used by bpe only.
std::unique_ptr<data::Tokenizer> learn_tokenizer(TokenizerKind kind, uint64_t vocabulary,
                                                 const std::vector<std::filesystem::path>& paths,
                                                 const data::TextOptions& text = {}, const Progress& progress = {});

struct TokenisedText {
  std::unique_ptr<data::TokenStream> stream;
  uint64_t bytes = 0;      // of text
  uint64_t documents = 0;  // not counting empty ones
};

// Tokenises text with an existing tokenizer. Every document is followed by the end-of-text token, if there is one.
TokenisedText tokenise(const data::Tokenizer& tokenizer, const std::vector<std::filesystem::path>& paths,
                       const data::TextOptions& text = {}, const OpenOptions& options = {});

}  // namespace quern::train
