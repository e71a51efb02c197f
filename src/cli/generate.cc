// quern generate: generates text with a trained model.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "core/text.h"
#include "evaluate/load.h"
#include "generate/generate.h"
#include "generate/utf8_stream.h"

namespace quern::cli {
namespace {

struct Options {
  std::string run;
  std::optional<std::string> prompt;
  GenerateOptions generate;
  size_t threads = 1;
};

constexpr const char* kExamples = R"(Examples:
  quern generate --run runs/first --prompt "Once"
  quern generate --run runs/first --tokens 500 --temperature 0.8 --top-k 40 --seed 7
  quern generate --run runs/first --threads 1            use one core only

The same run, prompt and seed give the same text with any number of threads. A model whose operations are too small to
be split uses fewer threads than requested. A model with a bpe tokenizer stops at the end of a document; with
--ignore-end it writes <|endoftext|> and continues with the next one. In a prompt, <|endoftext|> is that token.)";

int run_generate(const Options& options) {
  if (options.run.empty()) throw Error("generate: expected --run DIR, a trained run; run `quern generate --help`");
  if (options.prompt && options.prompt->empty()) {
    throw Error("generate: --prompt: expected a text, found an empty one; omit --prompt to start with a new line");
  }
  const train::TrainedModel trained = train::load_model(options.run, warn);
  const data::Tokenizer& tokenizer = trained.needed_tokenizer();
  Decoder decoder(*trained.model, {.threads = options.threads});
  Utf8Stream text;
  // Files and pipes get the raw text; a terminal would interpret escape codes in it.
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const auto show = [terminal](const std::string& characters) {
    fmt::print("{}", terminal ? printable(characters, Lines::kStay) : characters);
    std::fflush(stdout);
  };
  const Prompt prompt = options.prompt ? prompt_of(tokenizer, *options.prompt) : default_prompt(tokenizer);
  show(prompt.text);
  generate(Generation(decoder, tokenizer, prompt.tokens, options.generate), [&](int32_t token) {
    show(text.feed(tokenizer.bytes_of(token)));
    return true;
  });
  show(text.finish() + "\n");
  return 0;
}

}  // namespace

Command add_generate(Parser root) {
  const auto options = std::make_shared<Options>();
  GenerateOptions& generate = options->generate;
  Parser command = root.add_command("generate", "Generate text with a trained model");
  command.add_text("--run", options->run, "DIR", "Directory of the run");
  command.add_text("--prompt", options->prompt, "TEXT", "Beginning of the text (default: a new line)");
  command.add_number("--tokens", generate.max_tokens, "N", "Maximum number of tokens to generate");
  command.add_number(
      "--temperature", generate.sampling.temperature, "X",
      "Sampling temperature: lower is more predictable, higher more varied; 0 always picks the most likely token");
  command.add_number("--top-k", generate.sampling.top_k, "K", "Sample from the K most likely tokens only; 0 for all");
  command.add_number("--top-p", generate.sampling.top_p, "P",
                     "Sample from the most likely tokens with this total probability");
  command.add_number("--seed", generate.sampling.seed, "N", "Random seed");
  command.add_flag("--ignore-end", generate.ignore_end,
                   "Continue after the end of a document instead of stopping there");
  command.add_threads(options->threads);
  command.set_footer(kExamples);
  return {command, [options] { return run_generate(*options); }};
}

}  // namespace quern::cli
