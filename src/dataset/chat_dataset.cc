#include "dataset/chat_dataset.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "chat/conversation_files.h"
#include "chat/training_sequences.h"
#include "core/error.h"
#include "core/quick_hash.h"
#include "formats/chat_template_files.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using chat::MarkedTokens;
using chat::TrainingSequences;

std::vector<fs::path> as_paths(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

// Marks the conversations of files and tells how far it is.
class Reader {
 public:
  Reader(const RunConfig& config, const fs::path& folder, const data::Tokenizer& tokenizer, const OpenOptions& options)
      : tokenizer_(tokenizer),
        options_(options),
        template_(formats::choose_chat_template(options.resumed ? "" : config.data.chat_template, folder)) {
    if (template_) template_->fix_date();
  }

  std::vector<std::vector<MarkedTokens>> read(const std::vector<fs::path>& files) {
    std::vector<std::vector<MarkedTokens>> all;
    for (size_t i = 0; i < files.size(); ++i) {
      std::optional<chat::RecordKind> kind;
      chat::for_each_conversation(files[i], [&](chat::Conversation&& conversation) {
        kind = conversation.kind;
        check_template(conversation);
        all.push_back(chat::mark(conversation, template_ ? &*template_ : nullptr, tokenizer_));
        if (options_.progress) options_.progress("reading conversations", i, files.size());
        return true;
      });
      if (kind) kinds_ += fmt::format("{}: {}\n", files[i].string(), chat::name_of(*kind));
    }
    return all;
  }

  std::string template_text() const { return template_ ? template_->text() : std::string(); }
  // A line for each file that was read: its name and what its records are.
  const std::string& kinds() const { return kinds_; }

 private:
  void check_template(const chat::Conversation& conversation) const {
    if (template_ || conversation.kind != chat::RecordKind::kMessages) return;
    throw Error(
        "[data] {}: messages need a chat template, and the model has none; choose one with --chat-template chatml or "
        "--chat-template FILE",
        conversation.where);
  }

  const data::Tokenizer& tokenizer_;
  const OpenOptions& options_;
  std::optional<chat::ChatTemplate> template_;
  std::string kinds_;
};

// Conversations first ... last as sequences of a context.
TrainingSequences cut(std::vector<std::vector<MarkedTokens>>& conversations, size_t first, size_t last,
                      uint64_t context) {
  TrainingSequences sequences(static_cast<uint32_t>(context));
  for (size_t i = first; i < last; ++i) sequences.add(std::move(conversations[i]));
  return sequences;
}

uint64_t hash_of(const std::vector<MarkedTokens>& sequences) {
  uint64_t hash = sequences.size();
  for (const MarkedTokens& sequence : sequences) {
    const uint64_t parts[] = {hash, quick_hash(std::as_bytes(std::span(sequence.ids))),
                              quick_hash(std::as_bytes(std::span(sequence.trained)))};
    hash = quick_hash(std::as_bytes(std::span(parts)));
  }
  return hash;
}

void check_trained(const RunConfig& config, const TrainingSequences& sequences) {
  if (sequences.summary().sequences > 0) return;
  throw Error("[data] {}: expected tokens to train on within a context of {}, found none in {}", data_name(config),
              config.model.context, sequences.summary().text());
}

// Of a file that was given for validation. Without such a file, a small part of the data may well have nothing.
void check_held_out(const RunConfig& config, const chat::ConversationFiles& files, const TrainingSequences& sequences) {
  if (files.validation.empty() || sequences.summary().sequences > 0) return;
  throw Error(
      "[data] {}: expected tokens to validate with within a context of {}, found none in {}; remove the file to "
      "hold out a part of the others",
      files.validation.front().string(), config.model.context, sequences.summary().text());
}

void check_encoding(const RunConfig& config, const OpenOptions& options) {
  if (options.resumed || config.data.encoding == TextEncoding::kUtf8) return;
  throw Error(
      "[config] data.encoding: expected utf-8 with data.format=chat, because JSON is in UTF-8, found another; "
      "convert the files with iconv");
}

// `kind` is a word for the sequences, followed by a space, if they are not those to train on.
void warn_of_cuts(const chat::SequenceSummary& summary, uint64_t context, const OpenOptions& options,
                  const char* kind = "") {
  if (!options.warn || summary.cut + summary.dropped == 0) return;
  options.warn(fmt::format(
      "{} of {} {}sequences are longer than the context of {}: {} cut, and {} dropped, with nothing left to {}; the "
      "longest has {} tokens (--context)",
      summary.cut + summary.dropped, summary.sequences + summary.dropped, kind, context, summary.cut, summary.dropped,
      *kind == '\0' ? "train on" : "validate with", summary.longest));
}

}  // namespace

Dataset open_chat(const RunConfig& config, const fs::path& tokenizer_file, const OpenOptions& options) {
  if (!fs::exists(tokenizer_file)) {
    throw Error("[data] data.format: chat needs a trained model with a tokenizer.json to start from, found none");
  }
  check_encoding(config, options);
  Dataset dataset;
  dataset.tokenizer = data::Tokenizer::load(tokenizer_file.string());
  dataset.vocabulary = vocabulary_of(config, *dataset.tokenizer);
  const chat::ConversationFiles files = chat::find_conversation_files(as_paths(config.data.paths));
  Reader reader(config, tokenizer_file.parent_path(), *dataset.tokenizer, options);
  std::vector<std::vector<MarkedTokens>> all = reader.read(files.train);
  const size_t count = all.size();
  size_t held_out = static_cast<size_t>(std::floor(static_cast<double>(count) * config.data.validation_fraction));
  if (!files.validation.empty()) {
    for (auto& conversation : reader.read(files.validation)) all.push_back(std::move(conversation));
    held_out = all.size() - count;
  }
  TrainingSequences train = cut(all, 0, all.size() - held_out, config.model.context);
  TrainingSequences validation = cut(all, all.size() - held_out, all.size(), config.model.context);
  check_trained(config, train);
  check_held_out(config, files, validation);
  warn_of_cuts(train.summary(), config.model.context, options);
  warn_of_cuts(validation.summary(), config.model.context, options, "held-out ");
  dataset.train_tokens = train.summary().tokens;
  dataset.fingerprint = {train.summary().tokens + validation.summary().tokens,
                         hash_of(train.sequences()) ^ hash_of(validation.sequences()) * 3};
  dataset.chat.emplace(ChatData{
      .summary = train.summary(),
      .held_out = validation.summary(),
      .template_text = reader.template_text(),
      .kinds = reader.kinds(),
      .train = chat::ConversationRows(train.take(), static_cast<uint32_t>(config.model.context), config.data.packing),
      .validation = {}});
  if (validation.summary().sequences > 0) {
    dataset.chat->validation.emplace(validation.take(), static_cast<uint32_t>(config.model.context),
                                     config.data.packing);
  }
  return dataset;
}

chat::ConversationRows open_conversations(const RunConfig& config, const fs::path& folder,
                                          const data::Tokenizer& tokenizer, const std::vector<fs::path>& paths) {
  const OpenOptions options{.resumed = true};
  const chat::ConversationFiles files = chat::find_conversation_files(paths);
  std::vector<std::vector<MarkedTokens>> all = Reader(config, folder, tokenizer, options).read(files.train);
  TrainingSequences sequences = cut(all, 0, all.size(), config.model.context);
  check_trained(config, sequences);
  return {sequences.take(), static_cast<uint32_t>(config.model.context), config.data.packing};
}

void complete_steps(RunConfig& config, const Dataset& dataset) {
  if (!dataset.chat || config.train.steps != 0 || config.data.epochs == 0) return;
  const uint64_t rows = dataset.chat->train.size() * config.data.epochs, per_step = config.sequences_per_step();
  config.train.steps = (rows + per_step - 1) / per_step;
  constexpr double kWarmup = 0.03;
  if (config.given.warmup) return;
  config.optimizer.warmup = static_cast<uint64_t>(std::ceil(kWarmup * static_cast<double>(config.train.steps)));
}

}  // namespace quern::train
