// quern tokenize: converts text to token ids, to inspect or to train on.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "config/config.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/text.h"
#include "data/token_shard_writer.h"
#include "data/token_shards.h"
#include "dataset/dataset.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> data;
  std::string text;
  std::string tokenizer;
  std::string out;
  std::string kind = "bpe";
  uint64_t vocabulary = 8192;
  bool force = false;
  std::string field, encoding;  // of the text

  data::TextOptions text_options() const {
    train::RunConfig config;
    if (!field.empty()) train::apply_setting(config, "data.field=" + field, "--field " + in_quotes(field));
    if (!encoding.empty())
      train::apply_setting(config, "data.encoding=" + encoding, "--encoding " + in_quotes(encoding));
    return train::text_options(config);
  }
};

constexpr const char* kExamples = R"(Examples:
  quern tokenize book.txt --out tokens/book               learn 8,192 tokens, write token ids and tokenizer
  quern train tokens/book --run runs/book                 train on them
  quern tokenize more/ --tokenizer tokens/book --out tokens/more
  quern tokenize --tokenizer runs/book --text "Once upon a time"

Writes tokens.bin (llm.c format, 16 bits per token) and tokenizer.json (compatible with Hugging Face tokenizers) to the
--out directory, which must not contain them; --force replaces those that this command wrote. With bpe, every document
(a text file or a JSON Lines record) ends with the token <|endoftext|>. Files that end in .gz or .zst are decompressed.)";

// Loads a tokenizer.json, directly or from a directory (a run or an --out directory), or learns a tokenizer.
std::unique_ptr<data::Tokenizer> open_tokenizer(const Options& options, const train::Progress& progress) {
  if (options.tokenizer.empty()) {
    return train::learn_tokenizer(train::tokenizer_kind(options.kind), options.vocabulary,
                                  {options.data.begin(), options.data.end()}, options.text_options(), progress);
  }
  return data::Tokenizer::load_from(options.tokenizer);
}

void print_text(const data::Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  for (const int32_t id : ids) fmt::print("{:>7}  {}\n", id, in_quotes(tokenizer.bytes_of(id)));
  fmt::print("{} tokens, {} bytes\n", ids.size(), text.size());
}

void append_all(const data::TokenStream& stream, data::TokenShardWriter& writer) {
  constexpr uint64_t kPiece = 1 << 16;
  std::vector<int32_t> tokens(kPiece);
  for (uint64_t at = 0; at < stream.size(); at += kPiece) {
    const size_t n = std::min(kPiece, stream.size() - at);
    stream.copy(at, n, tokens.data());
    writer.append({tokens.data(), n});
  }
}

// Error if --out would replace files that this command did not write, which --force does not allow either: the
// tokenizer of a run, without which the run is unusable, or unrelated files with the same names.
void check_out(const fs::path& folder) {
  if (fs::exists(folder / "config.toml")) {
    throw Error("[tokenize] {}: holds a run, whose tokenizer would be replaced; choose another folder",
                folder.string());
  }
  const auto refuse = [&](const char* name) {
    throw Error("[tokenize] {}: expected a folder without {}, or one that this command wrote; choose another folder",
                folder.string(), name);
  };
  try {
    if (fs::exists(folder / "tokenizer.json")) data::Tokenizer::load((folder / "tokenizer.json").string());
  } catch (const Error&) {
    refuse("tokenizer.json");
  }
  try {
    const fs::path tokens = folder / "tokens.bin";
    if (!fs::exists(tokens)) return;
    const MappedFile file(tokens);
    file.read([&] { return data::find_shard_tokens(file.text(), tokens.string(), data::ShardFormat::kLlmC); });
  } catch (const Error&) {
    refuse("tokens.bin");
  }
}

// Error if there is something to replace.
void check_new(const fs::path& folder) {
  for (const char* name : {"tokens.bin", "tokenizer.json"}) {
    if (!fs::exists(folder / name)) continue;
    throw Error("[tokenize] {}: holds {} already; add --force to replace it, or choose another --out", folder.string(),
                name);
  }
}

// tokens.bin is renamed into place last, so its tokenizer always exists. It contains the tokenizer's digest: if the
// command is killed between the two writes in a directory with older tokens, the mismatched pair is rejected.
void write_pair(const data::TokenStream& stream, const data::Tokenizer& tokenizer, const fs::path& folder) {
  fs::create_directories(folder);
  data::TokenShardWriter writer(folder / "tokens.bin", data::ShardFormat::kLlmC, tokenizer.digest());
  append_all(stream, writer);
  tokenizer.save((folder / "tokenizer.json").string());
  writer.finish();
}

// Shows what is done and how much of it, from the first second on and ten times a second.
train::Progress percentages(Progress& status) {
  using Clock = std::chrono::steady_clock;
  return [&status, next = Clock::now() + std::chrono::seconds(1)](std::string_view what, uint64_t done,
                                                                  uint64_t total) mutable {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::milliseconds(100);
    status.show(fmt::format("{}: {} of {} MB, {} %", what, done / 1'000'000, total / 1'000'000,
                            100 * done / std::max<uint64_t>(1, total)));
  };
}

int run_tokenize(const Options& options) {
  if (options.data.empty() == options.text.empty()) {
    throw Error("tokenize: expected DATA, or --text with --tokenizer; run `quern tokenize --help`");
  }
  if (options.data.empty() && options.tokenizer.empty()) {
    throw Error("tokenize: --text needs --tokenizer FILE, or a folder with a tokenizer.json");
  }
  if (!options.out.empty()) check_out(options.out);
  if (!options.out.empty() && !options.force) check_new(options.out);
  Progress status;
  const train::Progress progress = percentages(status);
  const std::unique_ptr<data::Tokenizer> tokenizer = open_tokenizer(options, progress);
  if (!options.text.empty()) {
    status.clear();
    print_text(*tokenizer, options.text);
    return 0;
  }
  const train::TokenisedText text =
      train::tokenise(*tokenizer, {options.data.begin(), options.data.end()}, options.text_options(),
                      {.progress = progress, .warn = [](const std::string& line) { warn(line); }});
  if (!options.out.empty()) write_pair(*text.stream, *tokenizer, options.out);
  status.clear();
  if (text.documents > 1 && !tokenizer->end_of_text()) {
    warn(train::no_end_of_text(fmt::format("{}", fmt::join(options.data, ", ")), *tokenizer));
  }
  fmt::print("{} bytes, {} tokens, {:.3f} bytes per token; vocabulary {} ({})\n", text.bytes, text.stream->size(),
             static_cast<double>(text.bytes) / static_cast<double>(text.stream->size()), tokenizer->vocabulary_size(),
             tokenizer->name());
  if (!options.out.empty()) {
    fmt::print("written to {0}; to train on it, run `quern train {0} --run runs/NAME`\n", options.out);
  }
  return 0;
}

}  // namespace

Command add_tokenize(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser tokenize = root.add_command("tokenize", "Convert text to token ids");
  tokenize.add_words("DATA", options->data, "Text files, directories or .jsonl files");
  tokenize.add_text("--out", options->out, "DIR", "Output directory for tokens.bin and tokenizer.json");
  tokenize.add_flag("--force", options->force, "Replace tokens.bin and tokenizer.json in --out");
  tokenize.add_text("--tokenizer", options->tokenizer, "PATH",
                    "A tokenizer.json or a directory with one (default: learn a tokenizer)");
  tokenize.add_choice("--kind", options->kind, train::tokenizer_kind_names(), "KIND",
                      "Kind of tokenizer to learn: byte, char or bpe");
  tokenize.add_number("--vocabulary", options->vocabulary, "N",
                      "Vocabulary size of bpe: 256 bytes, the learned tokens and <|endoftext|>", {257, 65536});
  tokenize.add_text("--field", options->field, "NAME", "Field of .jsonl records with the text (default: text)");
  tokenize.add_text("--encoding", options->encoding, "NAME",
                    "Encoding of the text: utf-8 (default), utf-16, latin-1, windows-1252 or bytes");
  tokenize.add_text("--text", options->text, "TEXT", "Print the tokens of this text");
  tokenize.set_footer(kExamples);
  return {tokenize, [options] { return run_tokenize(*options); }};
}

}  // namespace quern::cli
