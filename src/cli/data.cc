// quern data: shows what a model would be trained on.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/conversation_files.h"
#include "chat/marked_tokens.h"
#include "cli/chat_template_option.h"
#include "cli/commands.h"
#include "cli/data_batches.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "data/byte_alphabet.h"
#include "formats/chat_template_files.h"

namespace quern::cli {
namespace {

struct Options {
  std::string file, run, base, chat_template;
  uint64_t row = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern data show chats.jsonl --run runs/smol           the first conversation, as this model would be trained on it
  quern data show chats.jsonl --run runs/smol --row 17 --json
  quern data show chats.jsonl                           without a model: bytes as tokens, the template chatml

FILE has one JSON object per line: {"messages": [{"role": "user", "content": "..."}, ...]} with an optional "tools",
{"prompt": "...", "completion": "..."}, or {"text": "..."}. What the model learns to say is highlighted, or in brackets
if the output is not a terminal; "train": false in a message or an object excludes it. A conversation whose template
writes earlier turns in another way than the last becomes several sequences.)";

// Stands in for that of a model.
std::unique_ptr<data::Tokenizer> byte_tokenizer_with_turns() {
  data::TokenizerParts parts;
  for (const uint8_t byte : data::bytes_in_alphabet_order()) {
    parts.tokens.push_back(data::to_alphabet(std::string(1, static_cast<char>(byte))));
  }
  parts.types.assign(parts.tokens.size(), data::TokenType::kNormal);
  for (const char* token : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) {
    parts.tokens.emplace_back(token);
    parts.types.push_back(data::TokenType::kControl);
  }
  parts.eos = static_cast<int32_t>(parts.tokens.size() - 1);
  return data::make_tokenizer(std::move(parts), "data");
}

std::string model_of(const Options& options) {
  if (!options.run.empty() && !options.base.empty()) {
    throw Error("data: expected one model, found --run {} and --base {}", in_quotes(options.run),
                in_quotes(options.base));
  }
  return options.run.empty() ? options.base : options.run;
}

chat::Conversation find_row(const Options& options) {
  std::optional<chat::Conversation> found;
  uint64_t rows = 0;
  chat::for_each_conversation(options.file, [&](chat::Conversation&& conversation) {
    if (++rows == options.row) found = std::move(conversation);
    return !found;
  });
  if (!found) throw Error("[data] {}: --row: expected 1 to {}, found {}", options.file, rows, options.row);
  return std::move(*found);
}

std::string bytes_of(const data::Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += tokenizer.bytes_of(id);
  return text;
}

// The text with marks around what is trained.
std::string marked_text(const chat::MarkedTokens& sequence, const data::Tokenizer& tokenizer, bool color) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < sequence.ids.size(); begin = end) {
    while (end < sequence.ids.size() && sequence.trained[end] == sequence.trained[begin]) ++end;
    const std::string span = bytes_of(tokenizer, std::span(sequence.ids).subspan(begin, end - begin));
    const bool trained = sequence.trained[begin] != 0;
    if (trained) text += color ? "\x1b[7m" : "⟦";
    text += printable(span, Lines::kStay);
    if (trained) text += color ? "\x1b[0m" : "⟧";
  }
  return text;
}

void print_text(const chat::Conversation& conversation, const std::vector<chat::MarkedTokens>& sequences,
                const data::Tokenizer& tokenizer, uint64_t row) {
  const bool color = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  uint64_t tokens = 0, trained = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences.size() > 1) fmt::print("sequence {} of {}:\n", i + 1, sequences.size());
    fmt::print("{}\n\n", marked_text(sequences[i], tokenizer, color));
    tokens += sequences[i].ids.size();
    trained += sequences[i].targets();
  }
  fmt::print("{:<10} {} ({})\n", "row", row, printable(conversation.where));
  fmt::print("{:<10} {}\n", "kind", name_of(conversation.kind));
  fmt::print("{:<10} {}\n", "sequences", sequences.size());
  fmt::print("{:<10} {}, {} trained\n", "tokens", tokens, trained);
}

void print_json(const chat::Conversation& conversation, const std::vector<chat::MarkedTokens>& sequences,
                const data::Tokenizer& tokenizer, uint64_t row) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const chat::MarkedTokens& sequence : sequences) {
    list.push_back({{"ids", sequence.ids}, {"trained", sequence.trained}, {"text", bytes_of(tokenizer, sequence.ids)}});
  }
  const nlohmann::ordered_json all = {{"kind", name_of(conversation.kind)}, {"row", row}, {"sequences", list}};
  fmt::print("{}\n", json_text(all));
}

struct BatchesOptions {
  std::string run;
  uint64_t first = 1, steps = 1;
  bool json = true;
};

int show(const Options& options) {
  if (options.file.empty()) throw Error("data show: expected a file; run `quern data show --help`");
  const std::string model = model_of(options);
  const std::string choice = model.empty() && options.chat_template.empty() ? "chatml" : options.chat_template;
  const auto tokenizer = model.empty() ? byte_tokenizer_with_turns() : data::Tokenizer::load_from(model);
  std::optional<chat::ChatTemplate> chat_template = formats::choose_chat_template(choice, model);
  if (chat_template) chat_template->fix_date();
  const chat::Conversation conversation = find_row(options);
  const auto sequences = chat::mark(conversation, chat_template ? &*chat_template : nullptr, *tokenizer);
  (options.json ? print_json : print_text)(conversation, sequences, *tokenizer, options.row);
  return 0;
}

}  // namespace

Command add_data(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("data", "Show what a model would be trained on");
  command.set_footer(kExamples);
  Parser shows = command.add_command("show", "Show one conversation, with what the model learns to say marked");
  shows.add_word("FILE", options->file, "Conversations, one JSON object per line (.jsonl, also .gz or .zst)");
  shows.add_number("--row", options->row, "N", "Which one; the first is 1", {.min = 1});
  shows.add_text("--run", options->run, "RUN", "The run whose tokenizer and chat template are used");
  shows.add_text("--base", options->base, "RUN", "The same");
  add_chat_template(shows, options->chat_template);
  shows.add_flag("--json", options->json, "Print one JSON object");
  shows.set_footer(kExamples);
  Parser lists = command.add_command("batches", "Print the sequences that a run's steps train on, as JSON");
  const auto batches = std::make_shared<BatchesOptions>();
  lists.add_text("--run", batches->run, "RUN", "The run");
  lists.add_number("--first", batches->first, "N", "The first step (default: 1)", {.min = 1});
  lists.add_number("--steps", batches->steps, "N", "How many (default: 1)", {.min = 1});
  lists.add_flag("--json", batches->json, "One JSON object per step, which is always printed");
  return {command, [=] {
            if (shows.parsed()) return show(*options);
            if (lists.parsed() && !batches->run.empty()) {
              return show_batches(batches->run, batches->first, batches->steps);
            }
            throw Error("data: expected show FILE, or batches --run RUN; run `quern data --help`");
          }};
}

}  // namespace quern::cli
